package execute_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
)

// an answer tells what was read for it, before what was tried; a stream of a routed request does with its end.
func TestAnswersTellWhatWasRead(t *testing.T) {
	t.Parallel()
	const read = `[{"type":"web_fetch","data":{"url":"https://a.example/"}}]`
	ask := func(w *world, body string, d *contract.Decision) string {
		j := job(body)
		j.Request.WebParts = []byte(read)
		if d != nil {
			j.Request.Model, j.Request.Decision = "auto", d
		}
		var got answer
		w.exec.Run(w.t.Context(), j, &got)
		require.Equal(w.t, read, string(j.Request.WebParts), "the envelope is only read")
		return got.text()
	}
	auto := func() *contract.Decision {
		return &contract.Decision{Provider: "pa", Model: "real-a", Reason: contract.ReasonTokenCount}
	}
	stream := strings.Replace(plainBody, `{`, `{"stream":true,`, 1)
	bubble(t, map[string]handler{"a": status(500, "{}"), "b": reply("b")}, func(w *world) {
		t := w.t
		require.JSONEq(t, read, gjson.Get(ask(w, plainBody, nil), "choices.0.message.parts").Raw, "a configured model tells nothing of what was tried")
		parts := gjson.Get(ask(w, plainBody, auto()), "choices.0.message.parts").Array()
		require.Len(t, parts, 2)
		require.Equal(t, "web_fetch", parts[0].Get("type").Str)
		require.Equal(t, "retry", parts[1].Get("type").Str)

		text := ask(w, stream, auto())
		require.Equal(t, 1, strings.Count(text, `"parts":`+read), text)
		require.NotContains(t, text, "retry")
		require.NotContains(t, ask(w, stream, nil), "parts", "the stream of a configured model is the upstream's own")
	})
}
