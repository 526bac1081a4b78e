package execute_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/stream"
)

// thinkRows is the table of section 9. The chunks of its rows 1, 2 and 8 are among the splits that every row is tried with.
var thinkRows = map[string]struct{ text, content, reasoning string }{
	"1, 2: one block":            {"<think>a</think>b", "b", "a"},
	"3: no tag":                  {"x<y", "x<y", ""},
	"4: a bracket before":        {"<<think>a</think>", "<", "a"},
	"5: a longer tag":            {"<thinking>z", "<thinking>z", ""},
	"6: never closed":            {"<think>a", "", "a"},
	"7: a tag that breaks off":   {"a<thin", "a<thin", ""},
	"8: text before":             {"p<think>q</think>r", "pr", "q"},
	"9: two blocks":              {"<think>a</think>b<think>c</think>d", "bd", "ac"},
	"10: nothing thought":        {"<think></think>b", "b", ""},
	"11: a stray end":            {"</think>b", "</think>b", ""},
	"12: an opener inside":       {"<think>a<think>b</think>c", "c", "a<think>b"},
	"13: an end that breaks off": {"<think>a</thin", "", "a</thin"},
	"several of them":            {"x<y <think>a</think>b<think>c</think>d<thin", "x<y bd<thin", "ac"},
	"14: wide characters":        {"한🌍<think>생각🤔</think>답🎉", "한🌍답🎉", "생각🤔"},
}

var thinkModes = map[stream.Think]string{stream.ThinkSplit: "split", stream.ThinkStrip: "strip", stream.ThinkOff: "off"}

// splits gives a text whole, in two at every place, and in single characters.
func splits(text string) [][]string {
	all := [][]string{{text}, strings.Split(text, "")}
	for i := range text {
		if i > 0 {
			all = append(all, []string{text[:i], text[i:]})
		}
	}
	return all
}

// thinker answers with the pieces that are set.
type thinker struct{ pieces atomic.Pointer[[]string] }

func (th *thinker) handle(w http.ResponseWriter, r *http.Request, n int) {
	if strings.Contains(r.Header.Get("Accept"), "json") {
		status(http.StatusOK, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":`+
			text(strings.Join(*th.pieces.Load(), ""))+`},"finish_reason":"stop"}]}`)(w, r, n)
		return
	}
	events(th.events()...)(w, r, n)
}

// events are the stream as the upstream sends it.
func (th *thinker) events() []string {
	steps := []string{delta(`{"role":"assistant","content":""}`)}
	for _, p := range *th.pieces.Load() {
		steps = append(steps, delta(`{"content":`+text(p)+`}`))
	}
	return append(steps, stop, doneEvent)
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// thought is what a client reads of an answer.
type thought struct{ content, reasoning string }

// streamed reads a stream, and requires on the way that nothing is taken back.
func streamed(t *testing.T, body string, want thought) (got thought) {
	t.Helper()
	require.True(t, strings.HasSuffix(body, stop+doneEvent), body)
	for event := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		d := gjson.Get(strings.TrimPrefix(event, "data: "), "choices.0.delta")
		got.content += d.Get("content").Str
		got.reasoning += d.Get("reasoning_content").Str
		require.True(t, strings.HasPrefix(want.content, got.content), "%q is sent of %q", got.content, want.content)
	}
	return got
}

// Scenario 26, R-220 to R-230: the table of section 9 with every split, streamed and not, in all three modes.
func TestScenario26Think(t *testing.T) {
	t.Parallel()
	for name, row := range thinkRows {
		for mode, want := range map[stream.Think]thought{
			stream.ThinkSplit: {row.content, row.reasoning},
			stream.ThinkStrip: {row.content, ""},
			stream.ThinkOff:   {row.text, ""},
		} {
			t.Run(name+", "+thinkModes[mode], func(t *testing.T) {
				t.Parallel()
				var th thinker
				bubble(t, map[string]handler{"a": th.handle}, func(w *world) {
					t := w.t
					for _, pieces := range splits(row.text) {
						th.pieces.Store(&pieces)
						got, out := w.run(t.Context(), streamBody)
						require.Equal(t, want, streamed(t, got.text(), want), "%q", pieces)
						require.Equal(t, "success", out.Usage.Status)
						if mode == stream.ThinkOff {
							require.Equal(t, strings.Join(th.events(), ""), got.text(), "R-220: byte for byte")
						}
						got, _ = w.run(t.Context(), plainBody)
						message := gjson.Get(got.text(), "choices.0.message")
						require.Equal(t, want, thought{message.Get("content").Str, message.Get("reasoning_content").Str}, "%q", pieces)
					}
				}, func(c *execute.Channel) { c.Think = mode })
			})
		}
	}
}
