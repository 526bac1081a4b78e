package ollama_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/shared/openai"
)

// what a request looks like in Ollama's own words. Texts and numbers keep their spelling.
func TestRequest(t *testing.T) {
	t.Parallel()
	const standard = `"options":{"num_ctx":8192,"temperature":1.0,"top_p":1.0},"truncate":false,"stream":false}`
	for name, tt := range map[string]struct{ in, want string }{
		"plain": {
			`{"model":"kappa:8b","messages":[{"role":"user","content":"Gr\u00fcn \"x\" 😀"}]}`,
			`{"model":"kappa:8b","messages":[{"role":"user","content":"Gr\u00fcn \"x\" 😀"}],` + standard,
		},
		"sampling": {
			`{"model":"m","messages":[],"temperature":0.70,"top_p":1e-1,"seed":12345678901234567890,"frequency_penalty":0,"presence_penalty":null,` +
				`"stop":"\n","max_tokens":5,"max_completion_tokens":7,"top_k":3,"user":"u","n":2,"logit_bias":{}}`,
			`{"model":"m","messages":[],"options":{"num_ctx":8192,"temperature":0.70,"top_p":1e-1,"seed":12345678901234567890,` +
				`"frequency_penalty":0,"num_predict":7,"stop":["\n"]},"truncate":false,"stream":false}`,
		},
		"several stops": {
			`{"model":"m","messages":[],"stop":["a","b"],"max_tokens":5}`,
			`{"model":"m","messages":[],"options":{"num_ctx":8192,"temperature":1.0,"top_p":1.0,"num_predict":5,"stop":["a","b"]},"truncate":false,"stream":false}`,
		},
		"roles and parts": {
			`{"model":"m","messages":[{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"\u0062"}]},{"role":"user","content":{"type":"text","text":"c"}},{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}]}`,
			`{"model":"m","messages":[{"role":"system","content":"a\n\u0062"},{"role":"user","content":"c"},{"role":"assistant","content":"no"}],` + standard,
		},
		"images": {
			`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"What?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGg=="}},{"type":"image_url","image_url":"data:;base64,_-8"}]}]}`,
			`{"model":"m","messages":[{"role":"user","content":"What?","images":["iVBORw0KGg==","/+8="]}],` + standard,
		},
		"tools": {
			`{"model":"m","messages":[{"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"get_time","arguments":"{\"city\": \"Oslo\", \"n\": 1.0}"}},{"id":"c2","type":"function","function":{"name":"list","arguments":""}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":"10"},{"role":"tool","tool_call_id":"c2","name":"other","content":[{"type":"text","text":"x"}]}],` +
				`"tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object"}}}],"tool_choice":"auto","parallel_tool_calls":true}`,
			`{"model":"m","messages":[{"role":"assistant","content":"","thinking":"Hm.","tool_calls":[{"id":"c1","function":{"name":"get_time","arguments":{"city": "Oslo", "n": 1.0}}},{"id":"c2","function":{"name":"list","arguments":{}}}]},` +
				`{"role":"tool","content":"10","tool_name":"get_time","tool_call_id":"c1"},{"role":"tool","content":"x","tool_name":"other","tool_call_id":"c2"}],` +
				`"tools":[{"type":"function","function":{"name":"get_time","parameters":{"type":"object"}}}],` + standard,
		},
		"no tools wanted": {
			`{"model":"m","messages":[],"tools":[{"type":"function"}],"tool_choice":"none"}`,
			`{"model":"m","messages":[],` + standard,
		},
		"calls of the old form": {
			`{"model":"m","messages":[{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"}]}`,
			`{"model":"m","messages":[{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"1","tool_name":"f"}],` + standard,
		},
		"json":            {`{"model":"m","messages":[],"response_format":{"type":"json_object"}}`, `{"model":"m","messages":[],"format":"json",` + standard},
		"schema":          {`{"model":"m","messages":[],"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","n":1.0}}}}`, `{"model":"m","messages":[],"format":{"type":"object","n":1.0},` + standard},
		"text":            {`{"model":"m","messages":[],"response_format":{"type":"text"}}`, `{"model":"m","messages":[],` + standard},
		"odd format":      {`{"model":"m","messages":[],"response_format":"{\"type\":\"json_object\",\"schema\":{}}"}`, `{"model":"m","messages":[],` + standard},
		"no thinking":     {`{"model":"m","messages":[],"reasoning_effort":"none"}`, `{"model":"m","messages":[],"think":false,` + standard},
		"little thinking": {`{"model":"m","messages":[],"reasoning_effort":"minimal"}`, `{"model":"m","messages":[],"think":"low",` + standard},
		"much thinking":   {`{"model":"m","messages":[],"reasoning":{"effort":"high"}}`, `{"model":"m","messages":[],"think":"high",` + standard},
		"most thinking":   {`{"model":"m","messages":[],"reasoning_effort":"xhigh"}`, `{"model":"m","messages":[],"think":"max",` + standard},
		"further members": {`{"model":"m","messages":[],"keep_alive":-1,"logprobs":true,"top_logprobs":2}`, `{"model":"m","messages":[],"keep_alive":-1,"logprobs":true,"top_logprobs":2,` + standard},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ollama.Request([]byte(tt.in), 8192, false)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(got))
		})
	}
	got, err := ollama.Request([]byte(`{"model":"m","messages":[]}`), 1, true)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(got), `,"stream":true}`))
}

// What can't be said to Ollama is the client's affair, and named.
func TestRequestErrors(t *testing.T) {
	t.Parallel()
	message := func(m string) string { return `{"model":"m","messages":[{"role":"user","content":"x"},` + m + `]}` }
	image := func(url string) string {
		return message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}`)
	}
	for name, tt := range map[string]struct{ body, param string }{
		"an image elsewhere":   {image("https://example.com/a.png"), "messages[1].content[0].image_url"},
		"no image":             {image("data:application/pdf;base64,AAAA"), "messages[1].content[0].image_url"},
		"not in base64":        {image("data:image/svg+xml,<svg/>"), "messages[1].content[0].image_url"},
		"bad base64":           {image("data:image/png;base64,A*A"), "messages[1].content[0].image_url"},
		"an empty image":       {image("data:image/png;base64,"), "messages[1].content[0].image_url"},
		"audio":                {message(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"input_audio","input_audio":{}}]}`), "messages[1].content[1]"},
		"a part that is none":  {message(`{"role":"user","content":["x"]}`), "messages[1].content[0]"},
		"a content that is":    {message(`{"role":"user","content":7}`), "messages[1].content"},
		"arguments":            {message(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":"}}]}`), "messages[1].tool_calls[0].function.arguments"},
		"arguments in a list":  {message(`{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"[1]"}}]}`), "messages[1].tool_calls[0].function.arguments"},
		"another kind of tool": {message(`{"role":"assistant","tool_calls":[{"type":"custom","custom":{}}]}`), "messages[1].tool_calls[0].function"},
		"effort":               {`{"model":"m","messages":[],"reasoning_effort":"extreme"}`, "reasoning_effort"},
		"no messages":          {`{"model":"m"}`, "messages"},
		"a message":            {`{"model":"m","messages":["{\"role\":\"user\"}"]}`, "messages[0]"},
		"no object":            {`"{\"model\":1}"`, ""},
		"no json":              {`{"model":`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ollama.Request([]byte(tt.body), 8192, false)
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			require.Equal(t, tt.param, bad.Param)
			require.NotEmpty(t, bad.Message)
		})
	}
}
