package answertest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// FuzzStream fuzzes an answer whose streams are events of JSON up to [DONE]: whatever a provider streams, and however it is cut, a client gets such events, the
// same each time, and nothing behind the end; collected it is JSON, too.
func FuzzStream(f *testing.F, options Options) {
	f.Helper()
	for _, fixture := range fixtures.All() {
		if fixture.Kind() == "sse" && len(fixture.Body) < 2<<10 {
			f.Add(string(fixture.Body))
		}
	}
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\\u2028\"},\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":1}}\r\rdata: [DONE]\n\ndata: {}\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, problem, err := Relay(Chat(strings.NewReader(text)), options)
		cut, cutProblem, cutErr := Relay(Chat(iotest.OneByteReader(strings.NewReader(text))), options)
		events := eventsOf(out)
		require.Equal(t, events, eventsOf(cut))
		require.Equal(t, string(problem), string(cutProblem))
		require.Equal(t, err == nil, cutErr == nil)
		for i, data := range events {
			require.True(t, data == "[DONE]" && i == len(events)-1 || json.Valid([]byte(data)), "%q", out)
		}
		if body, _, err := Collect(Chat(strings.NewReader(text)), options); err == nil && body != nil {
			require.True(t, json.Valid(body), "%q", body)
		}
	})
}

var made = regexp.MustCompile(`(chatcmpl-|cmpl-|call_)[a-z0-9]{26}|"created":[0-9]+`)

// eventsOf gives the data of events, without the ids and times that are made for each answer.
func eventsOf(text string) (list []string) {
	r := openai.NewReader(strings.NewReader(text), 0)
	for {
		e, err := r.Next()
		if err != nil {
			return list
		}
		if e.Data != nil {
			list = append(list, made.ReplaceAllStringFunc(string(e.Data), func(text string) string {
				if text[0] == '"' {
					return `"created":0`
				}
				return "id"
			}))
		}
	}
}
