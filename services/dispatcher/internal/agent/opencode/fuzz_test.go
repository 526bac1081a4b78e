package opencode

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/reply"
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/shared/testkit/fixtures"
)

// Whatever a server says, the answer is JSON and its text is what the parts hold.
func FuzzEvents(f *testing.F) {
	for _, fx := range fixtures.Of("opencode") {
		f.Add(fx.Body, []byte(theLamp))
	}
	f.Add([]byte(partBegins), []byte(isIdle))
	f.Add([]byte(sessionError("APIError", `{"statusCode":-5}`)), []byte(`{"type":"session.status","properties":{"status":{"type":"retry","next":1e300}}}`))
	f.Fuzz(func(t *testing.T, first, second []byte) {
		tr := newTranscript("ses_1", model{})
		var text strings.Builder
		for _, data := range [][]byte{[]byte(partBegins), first, second, []byte(theLamp)} {
			e := readEvent(data)
			switch e.kind {
			case ofMessage:
				tr.note(e.message)
			case ofPart:
				if kind, added := tr.grow(e.part); kind == "text" {
					text.WriteString(added)
				}
			case ofDelta:
				if kind, added := tr.extend(e.part.id, e.delta); kind == "text" {
					text.WriteString(added)
				}
			case failed, repeating:
				require.GreaterOrEqual(t, e.failure.status, 400)
				require.LessOrEqual(t, e.failure.status, 599)
			case other, connected, nowIdle, asking:
			}
		}
		a := tr.answer()
		require.Len(t, a.Text, text.Len())
		require.True(t, gjson.ValidBytes(whole(a)))
		require.GreaterOrEqual(t, a.Usage.Prompt, int64(0))
	})
}

func FuzzOutput(f *testing.F) {
	f.Add([]byte(printed))
	f.Add([]byte(printedFailures))
	f.Add([]byte("\n{\n[]\n\"x\"\n{\"type\":\"text\",\"part\":5}"))
	f.Fuzz(func(t *testing.T, output []byte) {
		spoken, failure := readOutput(output, model{"vendor", "xi-1"})
		require.True(t, gjson.ValidBytes(whole(spoken.answer())))
		if failure != nil {
			require.GreaterOrEqual(t, failure.status, 400)
		}
	})
}

// whole is an answer as a client gets it.
func whole(a reply.Answer) []byte {
	return answertest.Filled(func(out *answer.Chunk, _ []byte) bool {
		a.Fill(out)
		return true
	}, nil)
}
