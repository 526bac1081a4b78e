package execute_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/services/dispatcher/internal/stream"
)

// note answers with h and keeps the value of the session header of each call.
func note(seen *[]string, mu *sync.Mutex, h handler) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		mu.Lock()
		*seen = append(*seen, r.Header.Get("X-Dialogue"))
		mu.Unlock()
		h(w, r, n)
	}
}

func dialogues(c *execute.Channel) { c.SessionHeader = "X-Dialogue" }

func turn(messages ...string) string {
	var list []string
	for i, m := range messages {
		role := "user"
		if i%2 == 1 {
			role = "assistant"
		}
		text, _ := json.Marshal(m)
		list = append(list, fmt.Sprintf(`{"role":%q,"content":%s}`, role, text))
	}
	return `{"model":"m","messages":[` + strings.Join(list, ",") + `]}`
}

// Scenario 25, R-200, R-204, R-210: one id over five turns and across a failover; another dialogue has another id; a thousand and one
// dialogues have as many ids, and parallel first turns of one dialogue have one.
func TestScenario25SessionHeader(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var a, b []string
	ups := map[string]handler{
		"a": note(&a, &mu, inTurn(reply("a"), reply("a"), status(500, "{}"), reply("a"))), "b": note(&b, &mu, reply("b")),
	}
	bubble(t, ups, func(w *world) {
		t := w.t
		w.exec.Dialogues = &sessionheader.Registry{}
		history := []string{"q1"}
		for i := range 5 {
			w.run(t.Context(), turn(history...))
			history = append(history, fmt.Sprint("a", i), fmt.Sprint("q", i+2))
		}
		require.Len(t, b, 1)
		ids := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(a), b...))))
		require.Len(t, ids, 1)
		require.Regexp(t, "^[0-9a-f]{32,}$", ids[0])

		a = nil
		for i := range 1001 {
			w.run(t.Context(), turn(fmt.Sprint("crowd ", i)))
		}
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(a))), 1001)
		require.NotContains(t, a, ids[0])

		a = nil
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { w.run(t.Context(), turn("one and the same")) })
		}
		wg.Wait()
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(a))), 1)
	}, dialogues)
}

// Scenario 26, R-222: the modes work for streams and for whole answers, through the whole call.
func TestScenario26ThinkTags(t *testing.T) {
	t.Parallel()
	const text = "x<y <think>a</think>b<think>c</think>d<thin"
	answer := func(w http.ResponseWriter, r *http.Request, n int) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if gjson.GetBytes(body, "stream").Bool() {
			var steps []string
			for _, c := range text { // one character in each chunk
				steps = append(steps, delta(fmt.Sprintf(`{"content":%q}`, string(c))))
			}
			events(append(steps, stop, doneEvent)...)(w, r, n)
			return
		}
		status(200, fmt.Sprintf(`{"choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text))(w, r, n)
	}
	for mode, want := range map[stream.Think]struct{ content, reasoning string }{
		stream.ThinkOff: {text, ""}, stream.ThinkSplit: {"x<y bd<thin", "ac"}, stream.ThinkStrip: {"x<y bd<thin", ""},
	} {
		t.Run(fmt.Sprint(mode), func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": answer}, func(w *world) {
				t := w.t
				whole, _ := w.run(t.Context(), plainBody)
				require.Equal(t, want.content, gjson.Get(whole.text(), "choices.0.message.content").Str)
				require.Equal(t, want.reasoning, gjson.Get(whole.text(), "choices.0.message.reasoning_content").Str)

				streamed, _ := w.run(t.Context(), streamBody)
				var content, reasoning strings.Builder
				for line := range strings.SplitSeq(streamed.text(), "\n") {
					data := strings.TrimPrefix(line, "data: ")
					content.WriteString(gjson.Get(data, "choices.0.delta.content").Str)
					reasoning.WriteString(gjson.Get(data, "choices.0.delta.reasoning_content").Str)
				}
				require.Equal(t, want.content, content.String())
				require.Equal(t, want.reasoning, reasoning.String())
			}, func(c *execute.Channel) { c.Think = mode })
		})
	}
}
