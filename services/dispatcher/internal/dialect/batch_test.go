package dialect_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
)

// embedder answers each call with a vector for each input, which is the number of the input.
type embedder struct {
	dialect.Dialect

	native  bool
	fail    int // number of the call that is refused, counted from 1
	strange int // number of the call that is no answer
	slow    time.Duration
	calls   []string
}

func (e *embedder) Embed(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	call.Header.Set("Once", "yes") // it belongs to the call
	e.calls = append(e.calls, string(call.Body))
	select {
	case <-time.After(e.slow):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	status := http.StatusOK
	var vectors []string
	for _, input := range gjson.GetBytes(call.Body, "input").Array() {
		number := strings.Trim(input.Raw, `"[]`)
		if e.native {
			vectors = append(vectors, `{"values":[`+number+`]}`)
		} else {
			vectors = append(vectors, `{"embedding":[`+number+`],"object":"embedding"}`)
		}
	}
	body := strings.Join(vectors, ",")
	if e.native {
		body = `{"embeddings":[` + body + `]}`
	} else {
		body = `{"data":[` + body + `],"model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}`
	}
	switch len(e.calls) {
	case e.fail:
		status, body = http.StatusTooManyRequests, `{"error":{"message":"slow down"}}`
	case e.strange:
		body = `{"error":{"message":"in a 200"}}`
	}
	ctx, cancel := context.WithCancelCause(ctx)
	return upstream.NewResponse(ctx, cancel, status, http.Header{"X": {"y"}}, io.NopCloser(strings.NewReader(body))), nil
}

func inputs(n int, before, after string) string {
	var all []string
	for i := range n {
		all = append(all, before+strconv.Itoa(i)+after)
	}
	return `{"model":"m","input": [` + strings.Join(all, " , ") + `],"user":"u"}`
}

func embedAll(t *testing.T, e *embedder, body string) (status int, answer string, err error) {
	t.Helper()
	d := dialect.Batched{Dialect: e, Most: 100}
	resp, err := d.Embed(t.Context(), upstream.Call{Header: http.Header{}, Body: []byte(body), RequestTimeout: time.Minute})
	if err != nil {
		return 0, "", err
	}
	defer resp.Close()
	got, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, "y", resp.Header.Get("X"))
	return resp.Status, string(got), nil
}

// more inputs than the provider takes go out in several calls, and the answer is that of one.
func TestBatches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body  string
		calls int
	}{
		"few":              {inputs(100, `"`, `"`), 1},
		"one more":         {inputs(101, `"`, `"`), 2},
		"many":             {inputs(2048, `"`, `"`), 21},
		"arrays of tokens": {inputs(201, `[`, `]`), 3},
		"tokens":           {inputs(300, ``, ``), 1},
		"one text":         {`{"model":"m","input":"7"}`, 1},
		"none":             {`{"model":"m"}`, 1},
	} {
		for _, native := range []bool{false, true} {
			e := &embedder{native: native}
			status, answer, err := embedAll(t, e, c.body)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, status)
			require.Len(t, e.calls, c.calls, name)
			if c.calls == 1 {
				require.Equal(t, c.body, e.calls[0], "it goes as it is")
				continue
			}
			n := int(gjson.Get(c.body, "input.#").Int())
			list := gjson.Get(answer, "data")
			if native {
				list = gjson.Get(answer, "embeddings")
			} else {
				require.Equal(t, int64(2*c.calls), gjson.Get(answer, "usage.total_tokens").Int())
				require.Equal(t, "m", gjson.Get(answer, "model").Str)
			}
			require.Len(t, list.Array(), n)
			for i, v := range list.Array() {
				if native {
					require.Equal(t, `[`+strconv.Itoa(i)+`]`, v.Raw)
					continue
				}
				require.Equal(t, int64(i), v.Get("embedding.0").Int())
				require.Equal(t, int64(i), v.Get("index").Int())
			}
			require.Equal(t, "u", gjson.Get(e.calls[c.calls-1], "user").Str)
		}
	}
}

// The first call that fails is the answer, and no further one is made.
func TestBatchThatFails(t *testing.T) {
	t.Parallel()
	e := &embedder{fail: 2}
	status, answer, err := embedAll(t, e, inputs(300, `"`, `"`))
	require.NoError(t, err)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, `{"error":{"message":"slow down"}}`, answer)
	require.Len(t, e.calls, 2)

	e = &embedder{strange: 3}
	status, answer, err = embedAll(t, e, inputs(300, `"`, `"`))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, `{"error":{"message":"in a 200"}}`, answer)
}

// the calls have the time of one together.
func TestBatchesEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e := &embedder{slow: 25 * time.Second}
		begun := time.Now()
		_, _, err := embedAll(t, e, inputs(300, `"`, `"`))
		require.ErrorIs(t, err, classify.ErrTotalTimeout)
		require.Equal(t, time.Minute, time.Since(begun))
		require.Len(t, e.calls, 3)
	})
}
