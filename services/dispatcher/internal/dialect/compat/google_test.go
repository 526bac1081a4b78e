package compat_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fixtures"
)

// what Google is sure to refuse is mended on its compatible endpoint too, also for a model of the configuration; everything else of that
// stays as it is.
func TestGoogle(t *testing.T) {
	t.Parallel()
	const (
		begun  = `{"role":"assistant","content":"A"}`
		system = `{"role":"system","content":"s"}`
		dot    = `{"role":"user","content":"."},`
		format = `,"response_format":{"type":"json_object"}`
		tools  = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	)
	for _, c := range []struct{ name, model, messages, more, wantMessages, wantMore string }{
		{"sound", "gemini-2.5-flash", system + "," + hi, format + `,"seed":1,"user":"u"`, system + "," + hi, format + `,"seed":1,"user":"u"`},
		{"penalties", "gemini-2.5-flash", hi, `,"presence_penalty":0,"frequency_penalty":1`, hi, ``},
		{"penalties of old", "models/gemini-2.0-flash", hi, `,"presence_penalty":0`, hi, `,"presence_penalty":0`},
		{"JSON beside functions", "gemini-2.5-flash", hi, tools + format, hi, tools},
		{"text beside functions", "gemini-2.5-flash", hi, tools + `,"response_format":{"type":"text"}`, hi, tools + `,"response_format":{"type":"text"}`},
		{"JSON beside functions since 3", "gemini-3-flash", hi, tools + format, hi, tools + format},
		{"the assistant first", "gemini-3-flash", begun + "," + hi, ``, dot + begun + "," + hi, ``},
		{"the assistant after the system", "gemini-3-flash", system + "," + begun, ``, system + "," + dot + begun, ``},
		{"no instructions", "gemma-3-27b-it", system + "," + hi + `,{"content":"d","role":"developer"}`, format, `{"role":"user","content":"s"},` + hi + `,{"content":"d","role":"user"}`, ``},
		{"set by the operator", "gemini-2.5-flash", hi, tools + `,"response_format":{"type":"json_object"},"frequency_penalty":1`, hi, tools + format},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &provider{answers: []fixtures.Fixture{fixtures.Get("openai/chat-text.json")}}
			keep := func(name string) bool { return c.name == "set by the operator" && name == "response_format" }
			d := compat.Dialect{Dialect: dialect.OpenAI{Client: p}, Vendor: "gemini", AsIs: true, Keep: keep}
			body := `{"messages":[` + c.messages + `],"model":"` + c.model + `"` + c.more + `}`
			resp, err := d.Chat(t.Context(), upstream.Call{URL: "https://h", Header: http.Header{}, Body: []byte(body)})
			require.NoError(t, err)
			resp.Close()
			require.Equal(t, `{"messages":[`+c.wantMessages+`],"model":"`+c.model+`"`+c.wantMore+`}`, string(p.calls[0].Body))
		})
	}
}

// names of functions that Google does not take get others on the way there, and their own on the way back.
func TestGoogleNames(t *testing.T) {
	t.Parallel()
	request := func(name, other string) string {
		return `{"model":"gemini-2.5-flash","messages":[{"role":"user","content":"hi","name":"1user"},` +
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"` + name + `","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","name":"` + name + `","content":"1"}],` +
			`"tools":[{"type":"function","function":{"name":"` + name + `"}},{"type":"function","function":{"name":"` + other + `"}},{"type":"function","function":{"name":"f"}}],` +
			`"tool_choice":{"type":"function","function":{"name":"` + name + `"}}}`
	}
	whole := func(name string) string {
		return `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,` +
			`"tool_calls":[{"id":"b","type":"function","function":{"name":"` + name + `","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	}
	stream := func(name string) string {
		const head = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":`
		return head + `{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"` + name + `","arguments":"{}"}}]},"finish_reason":null}]}` + "\n\n" +
			head + `{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	}
	for kind, text := range map[string]func(name string) string{"application/json": whole, "text/event-stream": stream} {
		for _, signatures := range []*compat.Signatures{nil, compat.NewSignatures()} {
			ask := func(name, other, answered string) (sent, got string) {
				p := &provider{answers: []fixtures.Fixture{{Status: http.StatusOK, Header: http.Header{"Content-Type": {kind}}, Body: []byte(text(answered))}}}
				d := compat.Dialect{Dialect: dialect.OpenAI{Client: p}, Vendor: "gemini", AsIs: true, Signatures: signatures}
				resp, err := d.Chat(t.Context(), upstream.Call{URL: "https://h", Header: http.Header{}, Body: []byte(request(name, other))})
				require.NoError(t, err)
				defer resp.Close()
				got, err = answertest.Body(resp)
				require.NoError(t, err)
				return string(p.calls[0].Body), got
			}
			sent, got := ask("2_plus", "_3d", "_2_plus")
			require.Equal(t, request("_2_plus", "__3d"), sent)
			require.Equal(t, text("2_plus"), got)
			sent, got = ask("plain", "_x", "_2_plus")
			require.Equal(t, request("plain", "_x"), sent)
			require.Equal(t, text("_2_plus"), got, "nothing was renamed")
		}
	}
}
