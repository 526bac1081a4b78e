package fetch_test

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// hostile addresses are refused without a connection, in words that tell nothing.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	f := fetch.NewPatient(w.Guard(), fetch.Config{})
	for _, raw := range w.Addresses() {
		_, err := f.Fetch(t.Context(), raw)
		fault(t, err, fetch.Blocked)
		require.ErrorIs(t, err, guard.ErrBlocked)
		require.EqualError(t, err, guard.ErrBlocked.Error())
	}
	require.Empty(t, w.Reached())
}

// no redirect and no answer of DNS leads inside.
func TestHostileSetups(t *testing.T) {
	t.Parallel()
	setups := guardtest.Setups()
	require.Greater(t, len(setups), 60)
	for _, s := range setups {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			w := guardtest.New(t)
			page, err := fetch.NewPatient(w.Guard(), fetch.Config{}).Fetch(t.Context(), s.Start(w))
			require.Empty(t, w.Reached())
			if s.Readable {
				require.NoError(t, err)
				require.Contains(t, string(page.Body), guardtest.PageText)
				return
			}
			require.Nil(t, page)
			failed, ok := errors.AsType[*fetch.Error](err)
			require.True(t, ok)
			require.Contains(t, []fetch.Kind{fetch.Blocked, fetch.Redirects}, failed.Kind)
			require.NotRegexp(t, `[0-9]`, err.Error())
		})
	}
}

// A world notices whoever comes to its traps, or goes elsewhere: what the tests above rely on.
func TestTrapsCount(t *testing.T) {
	t.Parallel()
	for _, allowed := range []string{"127.0.0.1", "10.0.0.1"} {
		w := guardtest.New(t)
		page, err := fetch.NewPatient(w.Guard(allowed), fetch.Config{}).Fetch(t.Context(), "http://"+allowed+":"+w.TrapPort()+"/")
		require.Len(t, w.Reached(), 1)
		if err == nil {
			require.Contains(t, string(page.Body), guardtest.TrapText)
		}
	}
}

// where only the name is allowed, a redirect to its address is refused. R-287: the fifth redirect is followed, the sixth is not.
func TestRedirects(t *testing.T) {
	t.Parallel()
	var count int
	var base string
	server := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		count++
		var n int
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &n)
		switch {
		case r.URL.Path == "/address":
			guardtest.Redirect(302, strings.Replace(base, "localhost", "127.0.0.1", 1)+"/0")(rw, r)
		case r.URL.Path == "/none":
			rw.WriteHeader(http.StatusFound)
		case n > 0:
			guardtest.Redirect(http.StatusFound, fmt.Sprintf("/%d?from=검색 어", n-1))(rw, r)
		default:
			guardtest.Page("")(rw, r)
		}
	})
	base = server
	f := fetch.NewPatient(guard.New(guard.Config{AllowHosts: []string{"localhost"}}), fetch.Config{})
	page, err := f.Fetch(t.Context(), base+"/5#part")
	require.NoError(t, err)
	require.Equal(t, base+"/0?from=%EA%B2%80%EC%83%89%20%EC%96%B4", page.URL)
	require.Equal(t, 6, count)
	_, err = f.Fetch(t.Context(), base+"/6")
	fault(t, err, fetch.Redirects)
	require.Equal(t, 12, count)
	_, err = f.Fetch(t.Context(), base+"/address")
	fault(t, err, fetch.Blocked)
	require.Equal(t, 13, count)
	_, err = f.Fetch(t.Context(), base+"/none")
	require.EqualError(t, err, "the server answered with status 302")
}

// what counts as a page, and what it says.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const text = "<html><p>안녕하세요</p></html>"
	tests := map[string]struct {
		status   int
		kind     string
		encoding string
		body     []byte
		want     fetch.Kind // "" = a page with text
	}{
		"html":                    {200, "text/html; charset=utf-8", "", []byte(text), ""},
		"created":                 {201, "text/html", "", []byte(text), ""},
		"accepted":                {202, "text/html", "", []byte(text), ""},
		"without content":         {204, "text/html", "", nil, fetch.Status},
		"part":                    {206, "text/html", "", []byte(text), fetch.Status},
		"not modified":            {304, "text/html", "", nil, fetch.Status},
		"forbidden":               {403, "text/html", "", []byte(text), fetch.Status},
		"missing":                 {404, "text/html", "", []byte(text), fetch.Status},
		"broken":                  {500, "text/html", "", []byte(text), fetch.Status},
		"plain":                   {200, "TEXT/Plain", "", []byte(text), ""},
		"odd parameters":          {200, "text/html; charset", "", []byte(text), ""},
		"two types":               {200, "text/html, text/html", "", []byte(text), ""},
		"json":                    {200, "application/json", "", []byte(text), ""},
		"a dialect of json":       {200, "application/ld+json", "", []byte(text), ""},
		"xhtml":                   {200, "application/xhtml+xml", "", []byte(text), ""},
		"a feed":                  {200, "application/rss+xml", "", []byte(text), ""},
		"pdf":                     {200, "application/pdf", "", []byte(text), ""},
		"no type, text":           {200, "", "", []byte(text), ""},
		"no type, bytes":          {200, "", "", []byte{0, 1, 2, 3}, fetch.Type},
		"picture":                 {200, "image/png", "", []byte(text), fetch.Type},
		"drawing":                 {200, "image/svg+xml", "", []byte(text), fetch.Type},
		"film":                    {200, "video/mp4", "", []byte(text), fetch.Type},
		"bytes":                   {200, "application/octet-stream", "", []byte(text), fetch.Type},
		"archive":                 {200, "application/zip", "", []byte(text), fetch.Type},
		"events":                  {200, "text/event-stream", "", []byte(text), fetch.Type},
		"pieces":                  {200, "multipart/x-mixed-replace; boundary=x", "", []byte(text), fetch.Type},
		"no such type":            {200, "text", "", []byte(text), fetch.Type},
		"identity":                {200, "text/html", "identity", []byte(text), ""},
		"gzip":                    {200, "text/html", "gzip", gzipped(text), ""},
		"gzip in capitals":        {200, "text/html", " GZIP ", gzipped(text), ""},
		"deflate":                 {200, "text/html", "deflate", deflated(text), ""},
		"bare deflate":            {200, "text/html", "deflate", bare(text), ""},
		"gzip of nothing":         {200, "text/html", "gzip", gzipped(""), ""},
		"nothing":                 {200, "text/html", "", nil, ""},
		"nothing as gzip":         {200, "text/html", "gzip", nil, ""},
		"gzip that is none":       {200, "text/html", "gzip", []byte(text), fetch.Network},
		"gzip cut off":            {200, "text/html", "gzip", gzipped(text)[:20], fetch.Network},
		"gzip twice":              {200, "text/html", "gzip, gzip", gzipped(string(gzipped(text))), fetch.Type},
		"an encoding not asked":   {200, "text/html", "br", []byte(text), fetch.Type},
		"the most":                {200, "text/plain", "", bytes.Repeat([]byte("a"), fetch.MaxBody), ""},
		"the most, packed":        {200, "text/plain", "gzip", gzipped(strings.Repeat("a", fetch.MaxBody)), ""},
		"more than the most":      {200, "text/plain", "", bytes.Repeat([]byte("a"), fetch.MaxBody+1), fetch.TooLarge},
		"more than that, packed":  {200, "text/plain", "gzip", gzipped(strings.Repeat("a", fetch.MaxBody+1)), fetch.TooLarge},
		"more than that, deflate": {200, "text/plain", "deflate", bare(strings.Repeat("a", fetch.MaxBody+1)), fetch.TooLarge},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header()["Content-Type"] = nil
				if tt.kind != "" {
					rw.Header().Set("Content-Type", tt.kind)
				}
				if tt.encoding != "" {
					rw.Header().Set("Content-Encoding", tt.encoding)
				}
				rw.WriteHeader(tt.status)
				_, _ = rw.Write(tt.body)
			})
			page, err := local().Fetch(t.Context(), server+"/")
			if tt.want != "" {
				fault(t, err, tt.want)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.status, page.Status)
			require.Equal(t, server+"/", page.URL)
			if tt.kind != "" {
				require.Equal(t, tt.kind, page.ContentType)
			}
			switch {
			case strings.Contains(name, "the most"):
				require.Len(t, page.Body, fetch.MaxBody)
			case strings.Contains(name, "nothing"):
				require.Empty(t, page.Body)
			default:
				require.Equal(t, text, string(page.Body))
			}
		})
	}
}

// a request says who asks and what for, and nothing else; it takes no proxy of the environment and keeps no cookies.
func TestRequest(t *testing.T) {
	var seen []http.Header
	server := serve(t, func(rw http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		rw.Header().Set("Set-Cookie", "a=b; Path=/")
		if r.URL.Path == "/first" {
			guardtest.Redirect(http.StatusFound, "/second")(rw, r)
			return
		}
		guardtest.Page("")(rw, r)
	})
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	_, err := local().Fetch(t.Context(), server+"/first")
	require.NoError(t, err)
	require.Len(t, seen, 2)
	for _, header := range seen {
		require.Equal(t, http.Header{
			"User-Agent": {"Mozilla/5.0 (compatible; HydraLLM)"}, "Accept-Encoding": {"gzip, deflate"}, "Connection": {"close"},
			"Accept":          {"text/html,application/xhtml+xml,text/plain;q=0.9,application/pdf;q=0.8,application/json;q=0.8,*/*;q=0.1"},
			"Accept-Language": {"en,ko;q=0.9,*;q=0.5"},
		}, header)
	}
}

// A server whose certificate nobody vouches for is not read.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	asked := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	server.Config.ErrorLog = silent()
	server.StartTLS()
	defer server.Close()
	_, err := fetch.NewPatient(guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}), fetch.Config{}).Fetch(t.Context(), server.URL)
	fault(t, err, fetch.Network)
	require.False(t, asked)
}

// what the system says about a connection is not told.
func TestNobodyThere(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, Err: syscall.ECONNREFUSED}
	g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}, Dial: func(context.Context, string, string) (net.Conn, error) { return nil, refused }})
	_, err := fetch.NewPatient(g, fetch.Config{}).Fetch(t.Context(), "http://127.0.0.1/")
	fault(t, err, fetch.Network)
	require.ErrorIs(t, err, refused)
	require.NotContains(t, err.Error(), "127")
}

// what a few bytes unpack to is bounded in time and memory, also when it unpacks to nothing.
func TestBombs(t *testing.T) {
	t.Parallel()
	sent := make(chan int64, 1)
	var zeros bytes.Buffer // a megabyte, which may be repeated
	pack, err := flate.NewWriter(&zeros, flate.BestCompression)
	require.NoError(t, err)
	_, err = pack.Write(make([]byte, 1<<20))
	require.NoError(t, err)
	require.NoError(t, pack.Flush())
	header := gzipped("")[:10]
	tests := map[string]struct{ start, repeat []byte }{
		"a terabyte of zeros":     {header, zeros.Bytes()},
		"nothing, without end":    {nil, bytes.Repeat(gzipped(""), 1000)},
		"something, without end":  {nil, gzipped(strings.Repeat("0123456789abcdefghijklmnopqrstuvwxyz", 1000))},
		"an extra field and more": {nil, append([]byte{0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff}, append(make([]byte, 0xffff), gzipped("")[10:]...)...)},
	}
	for name, tt := range tests {
		server := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/html")
			rw.Header().Set("Content-Encoding", "gzip")
			c := &counter{w: rw}
			_, err := c.Write(tt.start)
			for range 1 << 20 {
				if err != nil {
					break
				}
				_, err = c.Write(tt.repeat)
			}
			sent <- c.n
		})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := local().Fetch(t.Context(), server+"/")
		runtime.ReadMemStats(&after)
		fault(t, err, fetch.TooLarge)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<30), name) // other tests allocate beside this one
		require.Less(t, <-sent, int64(16<<20), name)                             // what the buffers between the two hold
	}
}

// A body without end is given up as soon as it is too large.
func TestEndlessBody(t *testing.T) {
	t.Parallel()
	gone := make(chan struct{})
	server := serve(t, func(rw http.ResponseWriter, _ *http.Request) {
		defer close(gone)
		rw.Header().Set("Content-Type", "text/html")
		line := []byte(strings.Repeat("endless words ", 1000))
		for {
			if _, err := rw.Write(line); err != nil {
				return
			}
		}
	})
	_, err := local().Fetch(t.Context(), server+"/")
	fault(t, err, fetch.TooLarge)
	<-gone
}

// headers without end, or too many of them, are not read.
func TestEndlessHeaders(t *testing.T) {
	t.Parallel()
	for _, line := range map[string]string{
		"headers":     "X-A: " + strings.Repeat("a", 1000) + "\r\n",
		"one header":  strings.Repeat("a", 1000),
		"early hints": "\r\nHTTP/1.1 103 Early Hints\r\nLink: " + strings.Repeat("a", 1000) + "\r\n",
	} {
		gone := make(chan struct{})
		address := raw(t, func(c net.Conn) {
			defer close(gone)
			_, err := c.Write([]byte("HTTP/1.1 200 OK\r\nX-B: "))
			for err == nil {
				_, err = c.Write([]byte(line))
			}
		})
		_, err := local().Fetch(t.Context(), address)
		fault(t, err, fetch.Network)
		<-gone
	}
}

// who does not speak, or speaks too slowly, is given up after a time; the caller's own limit counts, too.
func TestTimeLimits(t *testing.T) {
	t.Parallel()
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
	drip := func(start string, every time.Duration) func(net.Conn) {
		return func(c net.Conn) {
			_, err := io.WriteString(c, start)
			for err == nil {
				<-time.After(every)
				_, err = io.WriteString(c, "a")
			}
		}
	}
	silent := func(start string) func(net.Conn) {
		return func(c net.Conn) { _, _ = io.WriteString(c, start); _, _ = io.Copy(io.Discard, c) }
	}
	tests := map[string]struct {
		server func(net.Conn)
		limit  time.Duration // of the caller, from the start
		took   time.Duration
		want   fetch.Kind
	}{
		"no answer":               {silent(""), time.Hour, 10 * time.Second, fetch.Timeout},
		"slow headers":            {drip("HTTP/1.1 200 OK\r\nX: ", time.Second), time.Hour, 10 * time.Second, fetch.Timeout},
		"no body":                 {silent(head), time.Hour, 10 * time.Second, fetch.Timeout},
		"a body that stops":       {silent(head + "<html>"), time.Hour, 10 * time.Second, fetch.Timeout},
		"a body in drops":         {drip(head, time.Second), time.Hour, 30 * time.Second, fetch.Timeout},
		"the limit of the caller": {drip(head, time.Second), 4 * time.Second, 4 * time.Second, fetch.Timeout},
	}
	for name, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			var serving sync.WaitGroup
			defer serving.Wait()
			g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}, Dial: func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				serving.Go(func() {
					defer func() { _ = there.Close() }()
					if _, err := http.ReadRequest(newReader(there)); err == nil {
						tt.server(there)
					}
				})
				return here, nil
			}})
			ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
			defer cancel()
			began := time.Now()
			_, err := fetch.New(g, fetch.Config{}).Fetch(ctx, "http://127.0.0.1/")
			fault(t, err, tt.want)
			require.Equal(t, tt.took, time.Since(began), name)
		})
	}
}

// so many requests at a time, so many of them to one host, and who waits for a host keeps no place from others.
func TestPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		arrived, release := make(chan string, 10), make(chan struct{})
		g := guard.New(guard.Config{AllowHosts: []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}, Dial: func(ctx context.Context, _, address string) (net.Conn, error) {
			arrived <- address
			select {
			case <-release:
			case <-ctx.Done():
			}
			return nil, errors.New("refused")
		}})
		f := fetch.NewPatient(g, fetch.Config{Concurrent: 3, PerHost: 2})
		ctx, cancel := context.WithCancel(t.Context())
		kinds := make(chan error, 10)
		for range 4 {
			go func() { _, err := f.Fetch(ctx, "http://127.0.0.1/"); kinds <- err }()
		}
		synctest.Wait()
		require.Len(t, arrived, 2) // two of four
		go func() { _, err := f.Fetch(t.Context(), "http://127.0.0.2/"); kinds <- err }()
		synctest.Wait()
		require.Len(t, arrived, 3) // the third place is not taken by who waits
		go func() { _, err := f.Fetch(t.Context(), "http://127.0.0.3/"); kinds <- err }()
		synctest.Wait()
		require.Len(t, arrived, 3)
		cancel() // all four of the first host leave, those who wait as well
		synctest.Wait()
		require.Len(t, kinds, 4)
		for range 4 {
			fault(t, <-kinds, fetch.Canceled)
		}
		require.Len(t, arrived, 4)
		close(release)
		synctest.Wait()
		fault(t, <-kinds, fetch.Network)
		fault(t, <-kinds, fetch.Network)
	})
}

// a page that was read keeps its place, and not that at its host, until it is released.
func TestPagesKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") }))
	defer server.Close()
	f := fetch.New(guard.New(guard.Config{AllowHosts: []string{"127.0.0.1"}}), fetch.Config{Concurrent: 2, PerHost: 1})
	var pages []*fetch.Response
	for range 2 {
		page, err := f.Fetch(t.Context(), server.URL)
		require.NoError(t, err)
		pages = append(pages, page)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Fetch(ctx, server.URL)
	fault(t, err, fetch.Canceled)
	third := make(chan error, 1)
	go func() { _, err := f.Fetch(t.Context(), server.URL); third <- err }()
	require.Empty(t, third)
	pages[0].Release()
	pages[0].Release() // does nothing more
	require.NoError(t, <-third)
	(*fetch.Response)(nil).Release()
}
