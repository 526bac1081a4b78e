package execute_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FO-04, R-100: an answer that breaks off before its kind is known is a failure like any other. It must not pass for a cancellation, which
// would hand the request back and have it run again and again.
func TestBreaksOffBeforeItsKindIsKnown(t *testing.T) {
	t.Parallel()
	var half bytes.Buffer
	zip := gzip.NewWriter(&half)
	_, _ = zip.Write([]byte(`{"choices":[]}`)) // to memory
	for name, tc := range map[string]struct {
		h    handler
		wait time.Duration
	}{
		"connection closed": {h: func(w http.ResponseWriter, _ *http.Request, _ int) {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}},
		"half of gzip": {h: func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(half.Bytes())
		}},
		"nothing until the limit": {wait: 300 * time.Second, h: func(w http.ResponseWriter, r *http.Request, _ int) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": tc.h, "b": reply("b")}, func(w *world) {
				t := w.t
				start := time.Now()
				got, out := w.run(t.Context(), plainBody)
				require.Equal(t, tc.wait, time.Since(start))
				require.False(t, out.HandBack)
				require.Contains(t, got.text(), `"content":"b"`)
				require.Equal(t, 1, w.called("a"))
				require.Equal(t, 1, w.breakers.Get("a").Snapshot().Failures)
			})
		})
	}
}

// a gate without patience commits at once.
func TestGateWithoutPatience(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": events(pause(time.Second), delta(`{"content":"x"}`), stop, doneEvent)}, func(w *world) {
		t := w.t
		w.exec.Limits.GateTimeout = 0
		start := time.Now()
		got, _ := w.run(t.Context(), streamBody)
		require.Zero(t, got.headAt.Sub(start))
		require.Contains(t, got.text(), "[DONE]")
	})
}
