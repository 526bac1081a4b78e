package messages_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/messages"
)

// what a request to Messages says, in Chat Completions.
func TestChat(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"text": {
			`{"model":"m","max_tokens":9,"temperature":1.0,"top_p":0.50,"messages":[{"role":"user","content":"hi \u00e9"}]}`,
			`{"model":"m","messages":[{"role":"user","content":"hi \u00e9"}],"max_tokens":9,"temperature":1.0,"top_p":0.50}`,
		},
		"stream": {
			`{"stream":true,"stop_sequences":["a","b"],"messages":[{"role":"user","content":"hi"}],"metadata":{"user_id":"u"},"top_k":5,"x":1}`,
			`{"messages":[{"role":"user","content":"hi"}],"stop":["a","b"],"stream":true,"stream_options":{"include_usage":true}}`,
		},
		"system": {
			`{"system":[{"type":"text","text":"x-anthropic-billing-header: v"},{"type":"text","text":"A","cache_control":{"type":"ephemeral"}},{"type":"text","text":"B"}],"messages":[{"role":"user","content":"hi"},{"role":"system","content":[{"type":"text","text":"C"}]}]}`,
			`{"messages":[{"role":"system","content":"A\n\nB"},{"role":"user","content":"hi"},{"role":"system","content":"C"}]}`,
		},
		"parts": {
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{}},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"image","source":{"type":"url","url":"https://x/y"}},{"type":"document","title":"T","source":{"type":"text","media_type":"text/plain","data":"d"}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"e"}]}}]}]}`,
			`{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"image_url","image_url":{"url":"https://x/y"}},{"type":"text","text":"T"},{"type":"text","text":"d"},{"type":"text","text":"e"}]}]}`,
		},
		"results come first, in whatever message they are": {
			`{"messages":[{"role":"assistant","content":[{"type":"text","text":"let"},{"type":"text","text":" me"},{"type":"tool_use","id":"a","name":"f","input":{"n": 1.50}},{"type":"tool_use","id":"b","name":"g","input":{}}]},` +
				`{"role":"user","content":[{"type":"text","text":"wait"},{"type":"tool_result","tool_use_id":"b","is_error":true,"content":"no"}]},{"role":"system","content":"S"},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"},{"type":"image","source":{"type":"url","url":"u"}},{"type":"text","text":"y"}]}]}]}`,
			`{"messages":[{"role":"assistant","content":"let me","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1.50}"}},{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]},` +
				`{"role":"tool","tool_call_id":"b","content":"no"},{"role":"tool","tool_call_id":"a","content":"x\ny"},{"role":"user","content":[{"type":"text","text":"wait"}]},{"role":"system","content":"S"},` +
				`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}]}`,
		},
		"a call without a result has one": {
			`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":"never mind"}]}`,
			`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"There is no result."},{"role":"user","content":"never mind"}]}`,
		},
		"an id that comes again later": {
			`{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"2"}]}]}`,
			`{"messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":""},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"2"}]}`,
		},
		"thinking": {
			`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"old","signature":""},{"type":"text","text":"A"}]},{"role":"user","content":"q2"},` +
				`{"role":"assistant","content":[{"type":"thinking","thinking":"now","signature":""},{"type":"thinking","thinking":"signed","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}`,
			`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"A"},{"role":"user","content":"q2"},` +
				`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":"now"},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
		},
		"what Anthropic's tools did": {
			`{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]},{"role":"user","content":"on"}]}`,
			`{"messages":[{"role":"user","content":"q"},{"role":"user","content":"on"}]}`,
		},
		"tools": {
			`{"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"cache_control":{}},{"type":"custom","name":"g","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true},"messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"g","parameters":{"type":"object"}}}],"tool_choice":"required","parallel_tool_calls":false}`,
		},
		"a choice of one": {
			`{"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"},"messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":{"type":"function","function":{"name":"f"}}}`,
		},
		"a choice without tools": {
			`{"tools":[],"tool_choice":{"type":"auto"},"messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}]}`,
		},
		"a budget":    {`{"thinking":{"type":"enabled","budget_tokens":8000},"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"medium"}`},
		"an effort":   {`{"thinking":{"type":"adaptive"},"output_config":{"effort":"max"},"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"role":"user","content":"hi"}],"reasoning_effort":"high"}`},
		"no thinking": {`{"thinking":{"type":"disabled"},"output_config":{"effort":"max"},"messages":[{"role":"user","content":"hi"}]}`, `{"messages":[{"role":"user","content":"hi"}]}`},
		"a schema": {
			`{"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}},"messages":[{"role":"user","content":"hi"}]}`,
			`{"messages":[{"role":"user","content":"hi"}],"response_format":{"type":"json_schema","json_schema":{"name":"answer","schema":{"type":"object"},"strict":true}}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r contract.Request
			require.NoError(t, messages.Form{}.Scan([]byte(tt.in), &r))
			got, err := messages.Form{}.Chat([]byte(tt.in))
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
			_, err = openai.ScanRequest(got)
			require.NoError(t, err)
		})
	}
}

// what can't be sent to a provider of another protocol is refused, with its place.
func TestChatRefuses(t *testing.T) {
	t.Parallel()
	call := `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`
	for in, want := range map[string]string{
		`{"role":"user","content":[{"type":"text","text":"x"},{"type":"x_block"}]}`:                                                    `messages.0.content.1.type: a block of the type "x_block"`,
		`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"x"}}]}`:         `messages.0.content.0.source: documents application/pdf`,
		`{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"x"}}]}`:                                       `messages.0.content.0.source: documents of the source "file"`,
		`{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"x"}}]}`:                                          `messages.0.content.0.source.type: images of the source "file"`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":"r"}]}`:                                           `messages.0.content.0: unexpected tool_use_id found in tool_result blocks: "z"`,
		call + `,{"role":"user","content":"x"},` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"}]}`:      `messages.3.content.0: unexpected tool_use_id`,
		call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},{"type":"tool_result","tool_use_id":"a"}]}`:        `messages.1.content.1: unexpected tool_use_id`,
		call + `,{"role":"user","content":[{"type":"tool_result"}]}`:                                                                   `messages.1.content.0.tool_use_id: Field required`,
		call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"x"}]}]}`:                        `messages.1.content.0.content.0.type: a block of the type "x"`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"a","name":"f"}]}`:  `messages.0: tool_use ids must be unique`,
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":"x"}]}`:                                         `messages.0.content.0.input: Input should be an object`,
		`{"role":"assistant","content":[{"type":"tool_use","name":"f","input":{}}]}`:                                                   `messages.0.content.0.id: Field required`,
		`{"role":"assistant","content":[{"type":"image"}]}`:                                                                            `messages.0.content.0.type: a block of the type "image"`,
		`{"role":"user","content":"x"}],"tools":[{"type":"bash_20250124","name":"w"}],"tool_choice":{"type":"any"},"y":[1`:             `tool_choice: the provider of this model does not have the tool w`,
		`{"role":"user","content":"x"}],"tools":[{"type":"bash_20250124","name":"w"}],"tool_choice":{"type":"tool","name":"w"},"y":[1`: `tool_choice: the provider of this model does not have the tool w`,
		`{"role":"user","content":"x"}],"tools":[{"input_schema":{}}],"y":[1`:                                                          `tools.0.name: Field required`,
		`{"role":"user","content":"x"}],"tool_choice":{"type":"maybe"},"y":[1`:                                                         `tool_choice.type: must be one of`,
	} {
		_, err := messages.Form{}.Chat([]byte(`{"messages":[` + in + `]}`))
		var bad *openai.RequestError
		require.ErrorAs(t, err, &bad, in)
		require.Contains(t, bad.Message, want)
		require.NotEmpty(t, bad.Param)
	}
}

// 2,000 blocks and messages are nothing special.
func TestManyBlocks(t *testing.T) {
	t.Parallel()
	var all []string
	for range 2000 {
		all = append(all, `{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"text","text":"t"}]}`)
	}
	got, err := messages.Form{}.Chat([]byte(`{"messages":[` + strings.Join(all, ",") + `]}`))
	require.NoError(t, err)
	scan, err := openai.ScanRequest(got)
	require.NoError(t, err)
	require.Equal(t, int64(4000), scan.Tokens)
}

// what the ingress reads of a request.
func TestScan(t *testing.T) {
	t.Parallel()
	var r contract.Request
	require.NoError(t, messages.Form{}.Scan([]byte(`{"model":"m","max_tokens":100,"stream":true,"session_id":"s","has_search":true,"auto_web_fetch":false,"system":"`+strings.Repeat("x", 40)+`",
		"tools":[{"name":"f"}],"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}},{"type":"document","source":{"type":"text","data":"`+strings.Repeat("y", 40)+`"}},{"type":"text","text":"hi"}]}]}`), &r))
	require.Equal(t, "m", r.Model)
	require.Equal(t, "s", r.SessionID)
	require.True(t, r.Stream)
	require.True(t, r.IncludeUsage)
	require.True(t, r.Web.Search)
	require.NotNil(t, r.Web.Auto)
	require.Equal(t, contract.Traits{Tokens: (82+14)/4 + 256 + 100, Images: true, Files: true, Tools: true, UserText: true}, r.Traits)

	for in, want := range map[string]string{
		``:                               "The request body is empty.",
		`{"a"`:                           "not valid JSON",
		`[]`:                             "must be a JSON object",
		`{}`:                             "messages: at least one message is required",
		`{"messages":[]}`:                "messages: at least one message is required",
		`{"messages":5}`:                 "messages: must be an array",
		`{"messages":[5]}`:               "messages.0: must be an object",
		`{"messages":[{"role":"user"}]}`: "messages.0.content: Field required",
		`{"messages":[{"role":"user","content":5}]}`:                                            "messages.0.content: must be a string or an array",
		`{"messages":[{"role":"user","content":null}]}`:                                         "messages.0.content: must be a string or an array",
		`{"messages":[{"role":"user","content":"x"},{"role":"wizard","content":"x"}]}`:          "messages.1.role: must be one of",
		`{"messages":[{"role":"user","content":[5]}]}`:                                          "messages.0.content.0: must be an object",
		`{"messages":[{"role":"user","content":[{"text":"x"}]}]}`:                               "messages.0.content.0.type: Field required",
		`{"messages":[{"role":"user","content":"x"}],"stream":"yes"}`:                           "stream: must be a boolean",
		`{"messages":[{"role":"user","content":"x"}],"model":1}`:                                "model: must be a string",
		`{"messages":[{"role":"user","content":"x"}],"tools":{"name":"f"}}`:                     "tools: must be an array",
		`{"messages":[{"role":"user","content":"x"}],"tools":"f"}`:                              "tools: must be an array",
		`{"messages":[{"role":"user","content":"x"}],"tool_choice":"any"}`:                      "tool_choice: must be an object",
		`{"messages":[{"role":"user","content":"x"}],"stop_sequences":"a"}`:                     "stop_sequences: must be an array",
		`{"messages":[{"role":"user","content":"x"}],"stop_sequences":["a",1]}`:                 "stop_sequences.1: must be a string",
		`{"model":"a","messages":[{"role":"user","content":"x"}],"model":"b"}`:                  "model: is given more than once",
		`{"Model":"a","messages":[{"role":"user","content":"x"}]}`:                              "Model: is 'model'",
		`{"system":5,"messages":[{"role":"user","content":"x"}]}`:                               "system: must be a string or an array",
		`{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"a":1}]}]}]}`: "messages.0.content.0.content.0.type: Field required",
	} {
		err := messages.Form{}.Scan([]byte(in), &contract.Request{})
		var bad *openai.RequestError
		require.ErrorAs(t, err, &bad, in)
		require.Contains(t, bad.Message, want)
	}
}

// tokens are counted without those of the answer.
func TestScanCount(t *testing.T) {
	t.Parallel()
	var r contract.Request
	require.NoError(t, messages.ScanCount([]byte(`{"model":"m","stream":true,"max_tokens":9999,"messages":[{"role":"user","content":"The quick brown fox jumps over the lazy dog."}]}`), &r))
	require.Equal(t, int64(11), r.Traits.Tokens)
	require.False(t, r.Stream)
}

// messages go into a session and come back as the client wrote them; those of other surfaces are translated.
func TestMessages(t *testing.T) {
	t.Parallel()
	originals := []string{
		`{"role":"user","content":"q"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"},{"type":"text","text":"on","cache_control":{"type":"ephemeral"}}]}`,
	}
	list, err := messages.Form{}.Messages([]byte(`{"messages":[` + strings.Join(originals, ",") + `]}`))
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.True(t, list[3].Within)
	body := messages.Form{}.WithMessages([]byte(`{"model":"m","messages":[]}`), list)
	require.Equal(t, `{"model":"m","messages":[`+strings.Join(originals, ",")+`]}`, string(body))

	var hub []contract.Message
	for _, m := range []string{
		`{"role":"system","content":"S"}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"type":"input_audio"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"n\":1.50}"}}]}`,
		`{"role":"tool","tool_call_id":"x","content":"r"}`, `{"role":"assistant","content":"","refusal":"no","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s","format":"anthropic-claude-v1"},{"type":"reasoning.encrypted","data":"d","format":"anthropic-claude-v1"},{"type":"reasoning.text","text":"u","signature":"s","format":"other"}]}`, `{"role":"assistant","content":""}`,
	} {
		hub = append(hub, contract.Message{Body: []byte(m)})
	}
	body = messages.Form{}.WithMessages([]byte(`{"system":"A","messages":[]}`), hub)
	require.JSONEq(t, `{"system":[{"type":"text","text":"A"},{"type":"text","text":"S"}],"messages":[
		{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}},{"type":"text","text":"[input_audio]"}]},
		{"role":"assistant","content":[{"type":"tool_use","id":"x","name":"f","input":{"n":1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"}]},
		{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"no"}]}]}`, string(body))
	require.Contains(t, string(body), "1.50")

	// The results of one answer are one message, with what the user says next; what a client wrote stays as it is.
	hub = nil
	for _, m := range []string{
		`{"role":"tool","tool_call_id":"x","content":"r"}`, `{"role":"tool","tool_call_id":"y","content":""}`, `{"role":"user","content":"u"}`, `{"role":"user","content":"v"}`,
		`{"role":"assistant","content":"a"}`, `{"role":"tool","tool_call_id":"z","content":"r"}`,
	} {
		hub = append(hub, contract.Message{Body: []byte(m)})
	}
	own := []byte(`{"role":"user", "content":"w"}`)
	hub = append(hub, contract.Message{Body: own, Original: own}, contract.Message{Body: []byte(`{"role":"tool","tool_call_id":"q","content":"r"}`)})
	body = messages.Form{}.WithMessages([]byte(`{"messages":[]}`), hub)
	require.JSONEq(t, `{"messages":[
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":"r"},{"type":"tool_result","tool_use_id":"y"},{"type":"text","text":"u"}]},
		{"role":"user","content":[{"type":"text","text":"v"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"z","content":"r"}]},{"role":"user","content":"w"},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"q","content":"r"}]}]}`, string(body))

	// What only other surfaces have is said in blocks that each provider takes.
	hub = nil
	for _, m := range []string{
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"custom","custom":{"name":"f","input":"raw"}}]}`, `{"role":"tool","tool_call_id":"c","content":"r"}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]}`, `{"role":"function","name":"f","content":"r"}`,
	} {
		hub = append(hub, contract.Message{Body: []byte(m)})
	}
	require.JSONEq(t, `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"input":"raw"}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"r"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},
		{"role":"user","content":[{"type":"text","text":"r"}]}]}`, string(messages.Form{}.WithMessages([]byte(`{"messages":[]}`), hub)))
}

// blocks that only a provider of the protocol knows do not keep a message out of a session: such a provider gets them back.
func TestMessagesWithForeignBlocks(t *testing.T) {
	t.Parallel()
	for original, hub := range map[string]string{
		`{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"AA=="}},{"type":"text","text":"q"}]}`: `{"role":"user","content":[{"type":"text","text":"[document]"},{"type":"text","text":"q"}]}`,
		`{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"f"}},{"type":"container_upload","file_id":"g"}]}`:                      `{"role":"user","content":[{"type":"text","text":"[image]"},{"type":"text","text":"[container_upload]"}]}`,
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"new"},{"type":"text","text":"r"}]}]}`:                         `{"role":"tool","tool_call_id":"t","content":"[new]\nr"}`,
		`{"role":"assistant","content":[{"type":"new","x":1},{"type":"text","text":"a"}]}`:                                                                   `{"role":"assistant","content":"a"}`,
	} {
		body := []byte(`{"messages":[` + original + `]}`)
		list, err := messages.Form{}.Messages(body)
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.JSONEq(t, hub, string(list[0].Body))
		require.Equal(t, string(body), string(messages.Form{}.WithMessages(body, list)))
		_, err = messages.Form{}.Chat(body)
		require.Error(t, err, "a provider of another protocol does not get it")
	}
	_, err := messages.Form{}.Messages([]byte(`{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url"}}]}]}`))
	require.Error(t, err, "what is wrong for everybody stays so")
}

// text of the gateway goes to the system's.
func TestWithContext(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"messages":[]}`:             `{"messages":[],"system":"W"}`,
		`{"system":"","messages":[]}`: `{"system":"W","messages":[]}`,
		`{"system":"A"}`:              `{"system":[{"type":"text","text":"A"},{"type":"text","text":"W"}]}`,
		`{"system":[{"type":"text","text":"A","cache_control":{}}]}`: `{"system":[{"type":"text","text":"A","cache_control":{}},{"type":"text","text":"W"}]}`,
	} {
		require.Equal(t, want, string(messages.Form{}.WithContext([]byte(in), []byte(`{"role":"system","name":"web_context","content":"W"}`))))
	}
	// In the hub it is a message before the last one, as for chat.
	const web = `{"role":"system","name":"web_context","content":"<web_context>\nW"}`
	for in, want := range map[string]string{
		`{"messages":[{"role":"user","content":"q"}]}`:              `[` + web + `,{"role":"user","content":"q"}]`,
		`{"system":"A","messages":[{"role":"user","content":"q"}]}`: `[{"role":"system","content":"A"},` + web + `,{"role":"user","content":"q"}]`,
		`{"system":[{"type":"text","text":"A"},{"type":"text","text":"B"}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}]}`: `[{"role":"system","content":"A\n\nB"},{"role":"user","content":"q"},{"role":"assistant","content":"a"},` + web + `,{"role":"user","content":"r"}]`,
	} {
		hub, err := messages.Form{}.Chat(messages.Form{}.WithContext([]byte(in), []byte(web)))
		require.NoError(t, err)
		require.JSONEq(t, want, string(rawjson.Get(hub, "messages")))
	}
}

func FuzzForm(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		`{"system":[{"type":"text","text":"A"}],"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"m","data":"d"}},{"type":"document","source":{"type":"text","data":"d"}}]}]}`,
		`{"stream":true,"thinking":{"type":"enabled","budget_tokens":1},"tools":[{"name":"f"}],"tool_choice":{"type":"any"},"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"tool_use","id":"a","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"x"}]}]}]}`,
		`{"messages":[{"role":"system","content":"x"},{"role":"user","content":[]}]}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		form := messages.Form{}
		var r contract.Request
		if err := form.Scan([]byte(body), &r); err != nil {
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			return
		}
		require.Positive(t, r.Traits.Tokens)
		if hub, err := form.Chat([]byte(body)); err == nil {
			require.True(t, json.Valid(hub), string(hub))
		}
		list, err := form.Messages([]byte(body))
		if err != nil {
			return
		}
		again := form.WithMessages([]byte(body), list)
		require.True(t, json.Valid(again), string(again))
		for i := range list {
			require.True(t, json.Valid(list[i].Body))
			list[i].Original, list[i].Within = nil, false
		}
		translated := form.WithMessages([]byte(body), list)
		require.True(t, json.Valid(translated), string(translated))
	})
}
