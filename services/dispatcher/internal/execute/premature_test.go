package execute_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// early is an event with a finish reason that comes too early.
func early(event string) string {
	return strings.Replace(event, `"finish_reason":null`, `"finish_reason":"stop"`, 1)
}

// R-491, STR-01: the short wait for the usage is for streams that look finished, and begins again when one goes on.
func TestWaitsAfterPrematureFinish(t *testing.T) {
	t.Parallel()
	role, hi, you := early(delta(`{"role":"assistant","content":""}`)), delta(`{"content":"Hi"}`), delta(`{"content":" you"}`)
	hm := early(delta(`{"reasoning_content":"Hm"}`))
	ends := []string{stop, doneEvent}
	for name, tc := range map[string]struct {
		stream  []string
		content string
		after   time.Duration
	}{
		"a stop on the role":              {append([]string{role, pause(25 * time.Second), hi, you}, ends...), "Hi you", 25 * time.Second},
		"a stop on thoughts":              {append([]string{hm, pause(10 * time.Second), hm, pause(10 * time.Second), hi, you}, ends...), "Hi you", 20 * time.Second},
		"a stop on every piece":           {append([]string{early(hi), pause(1500 * time.Millisecond), early(you), pause(3 * time.Second), early(you), pause(3 * time.Second), early(you)}, ends...), "Hi you you you", 7500 * time.Millisecond},
		"a stop on every piece, and open": {[]string{early(hi), pause(time.Second), early(you), pause(time.Hour)}, "Hi you", 5 * time.Second},
		"thoughts that stop, and open":    {[]string{hm, pause(time.Hour)}, "", 20 * time.Second},
		"one stop, and open":              {[]string{early(hi), pause(time.Hour)}, "Hi", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": events(tc.stream...)}, func(w *world) {
				t := w.t
				w.exec.Limits.IdleTimeout = 20 * time.Second
				start := time.Now()
				got, out := w.run(t.Context(), streamBody)
				require.Equal(t, tc.after, time.Since(start))
				require.Equal(t, "success", out.Usage.Status)
				require.True(t, strings.HasSuffix(got.text(), doneEvent), got.text())
				require.Equal(t, 1, strings.Count(got.text(), `"finish_reason":"stop"`), got.text())
				var content strings.Builder
				for line := range strings.Lines(got.text()) {
					content.WriteString(gjson.Get(strings.TrimPrefix(line, "data: "), "choices.0.delta.content").Str)
				}
				require.Equal(t, tc.content, content.String())
			})
			if tc.content == "" {
				return // a whole answer has no idle time
			}
			bubble(t, map[string]handler{"a": events(tc.stream...)}, func(w *world) {
				t := w.t
				start := time.Now()
				got, _ := w.run(t.Context(), plainBody)
				require.Equal(t, tc.after, time.Since(start))
				require.Equal(t, tc.content, gjson.Get(got.text(), "choices.0.message.content").Str)
			})
		})
	}
}

// a stop before any output does not commit, so that another upstream answers when the first one fails; one that ends properly is an
// empty answer.
func TestStopBeforeOutput(t *testing.T) {
	t.Parallel()
	role := early(delta(`{"role":"assistant","content":""}`))
	broken := func(w http.ResponseWriter, _ *http.Request, _ int) {
		_, _ = w.Write([]byte(role))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	for name, h := range map[string]handler{
		"an error":             events(role, stop, `data: {"error":{"message":"busy"}}`+"\n\n"),
		"an error, much later": events(role, pause(20*time.Second), `data: {"error":{"message":"busy"}}`+"\n\n"),
		"a reset":              broken,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{streamBody, plainBody} {
				bubble(t, map[string]handler{"a": h, "b": reply("b")}, func(w *world) {
					t := w.t
					got, out := w.run(t.Context(), body)
					require.Equal(t, "success", out.Usage.Status)
					require.Contains(t, got.text(), `"content":"b"`)
					require.Equal(t, 1, w.called("a"))
				})
			}
		})
	}
	bubble(t, map[string]handler{"a": events(role, doneEvent), "b": reply("b")}, func(w *world) {
		t := w.t
		got, out := w.run(t.Context(), streamBody)
		require.Equal(t, "success", out.Usage.Status)
		require.Equal(t, role+doneEvent, got.text())
	})
}

// what waited is sent before the error of a stream that breaks off.
func TestErrorBehindFinish(t *testing.T) {
	t.Parallel()
	problem := `data: {"error":{"message":"died"}}` + "\n\n"
	hi := delta(`{"content":"Hi"}`)
	bubble(t, map[string]handler{"a": inTurn(events(hi, early(hi), problem), events(hi, early(delta(`{"reasoning":"Hm"}`)), delta(`{"content":"!"}`), problem))}, func(w *world) {
		t := w.t
		for _, want := range []string{hi + early(hi), hi + delta(`{"reasoning":"Hm"}`) + delta(`{"content":"!"}`)} {
			got, out := w.run(t.Context(), streamBody)
			require.Contains(t, out.Usage.Status, "error")
			require.True(t, strings.HasPrefix(got.text(), want+`data: {"error":`), got.text())
		}
	})
}
