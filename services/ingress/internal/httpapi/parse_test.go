package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"
)

func TestDecodeHead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw    string
		ok     bool
		events bool
	}{
		"JSON":                     {`{"status":200,"header":[["Content-Type","application/json"]]}`, true, false},
		"events":                   {`{"status":200,"header":[["content-type","text/event-stream; charset=utf-8"]]}`, true, true},
		"events in capitals":       {`{"status":200,"header":[["Content-Type","Text/Event-Stream"]]}`, true, true},
		"error":                    {`{"status":503,"header":[["Content-Type","application/json"],["Retry-After","1"]]}`, true, false},
		"no header":                {`{"status":204}`, true, false},
		"something like events":    {`{"status":200,"header":[["X-Type","text/event-stream"]]}`, true, false},
		"status of no answer":      {`{"status":101}`, false, false},
		"status beyond all":        {`{"status":600}`, false, false},
		"no status":                {`{}`, false, false},
		"no JSON":                  {`{"status":`, false, false},
		"status that is no number": {`{"status":"200"}`, false, false},
	}
	var cache heads
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 2 { // from the cache, too
				h, err := cache.parse([]byte(tt.raw))
				if !tt.ok {
					require.Error(t, err)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, tt.events, h.events)
			}
		})
	}
}

func TestHeadsAreBounded(t *testing.T) {
	t.Parallel()
	var cache heads
	for i := range 3 * maxHeads {
		_, err := cache.parse([]byte(`{"status":200,"header":[["X","` + strings.Repeat("x", i) + `"]]}`))
		require.NoError(t, err)
		require.LessOrEqual(t, len(cache.known), maxHeads)
	}
}

// heads that tell of one call are not kept, since each is another one.
func TestHeadsOfOneCallAreNotKept(t *testing.T) {
	t.Parallel()
	var cache heads
	for _, name := range []string{"X-Upstream-Request-Id", "X-Ratelimit-Remaining-Tokens", "Openai-Processing-Ms"} {
		h, err := cache.parse([]byte(`{"status":200,"header":[["` + name + `","1"]]}`))
		require.NoError(t, err)
		require.Len(t, h.header, 1)
	}
	require.Empty(t, cache.known)
}

// whatever a worker says, each header of the answer is one line that every client reads alike.
func FuzzDecodeHead(f *testing.F) {
	f.Add(`{"status":200,"header":[["Content-Type","text/event-stream"],["X-A","b"]]}`)
	f.Add(`{"status":200,"header":[["X-A","b\r\nX-B: c"]]}`)
	f.Add(`{"status":200,"header":[["X-A\r\nX-B","\u0000"],["Content-Type","\u007f"]]}`)
	f.Add(`{"status":404,"header":[["Connection","close"],["Set-Cookie","a"],["Trailer","b"],["Date","c"]]}`)
	f.Fuzz(func(t *testing.T, raw string) {
		h, err := decodeHead([]byte(raw))
		if err != nil {
			return
		}
		x := &exchange{RequestCtx: &fasthttp.RequestCtx{}}
		h.apply(x)
		head, end, found := strings.Cut(x.Response.Header.String(), "\r\n\r\n")
		require.True(t, found && end == "", "%q", end)
		lines := strings.Split(head, "\r\n")
		require.LessOrEqual(t, len(lines), len(h.header)+8)
		for _, line := range lines[1:] {
			name, value, found := strings.Cut(line, ":")
			require.True(t, found && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value), "%q", line)
		}
	})
}

func TestNewRequestID(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ids := map[string]bool{}
	for range 1000 {
		id := newRequestID(now)
		require.Regexp(t, `^[0-9a-v]{26}$`, id)
		require.False(t, ids[id])
		ids[id] = true
		require.Less(t, id[:9], newRequestID(now.Add(time.Hour)), "ids sort by time")
	}
}
