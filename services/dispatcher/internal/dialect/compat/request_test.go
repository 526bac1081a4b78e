package compat_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// golden is a body and what a vendor gets of it. An empty out says that the body stays as it is.
type golden struct{ name, vendor, in, out string }

// request puts messages and further members, each after a comma, into a body.
func request(messages, more string) string {
	return `{"model":"m","messages":[` + messages + `]` + more + `}`
}

const (
	hi   = `{"role":"user","content":"hi"}`
	tool = `{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`
	made = `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	got  = `{"role":"tool","tool_call_id":"call_1","content":"42"}`
)

// members of a request, by the fact they come from.
var members = []golden{
	// 3.1
	{"the bound of models that reason", "openai", request(hi, `,"max_tokens":1000000`), request(hi, `,"max_completion_tokens":1000000`)},
	{"the newer bound wins", "openai", request(hi, `,"max_tokens":5,"max_completion_tokens":7`), request(hi, `,"max_completion_tokens":7`)},
	{"a bound of null says nothing", "openai", request(hi, `,"max_tokens":5,"max_completion_tokens":null`), request(hi, `,"max_completion_tokens":5`)},
	{"members of other vendors", "openai", request(hi, `,"top_k":40,"chat_template_kwargs":{},"seed":1`), request(hi, `,"seed":1`)},
	{
		"sampling of models that always reason", "openai",
		`{"model":"o4-mini","temperature":0.2,"top_p":1,"messages":[` + hi + `],"seed":0}`, `{"model":"o4-mini","messages":[` + hi + `],"seed":0}`,
	},
	{"sampling of models that may reason", "openai", `{"model":"gpt-5.4","temperature":0.2,"messages":[` + hi + `]}`, ``},
	{
		"sampling while reasoning", "openai",
		`{"model":"gpt-5.4","temperature":0.2,"messages":[` + hi + `],"reasoning_effort":"low"}`,
		`{"model":"gpt-5.4","messages":[` + hi + `],"reasoning_effort":"low"}`,
	},
	{"sampling without reasoning", "openai", `{"model":"gpt-5.4","reasoning_effort":"none","temperature":0.2,"messages":[` + hi + `]}`, ``},
	{"allowed tools are OpenAI's", "openai", request(hi, `,"tools":[`+tool+`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto"}}`), ``},
	{"no tools", "openai", request(hi, `,"tools":[],"tool_choice":"auto","parallel_tool_calls":false`), request(hi, ``)},

	// 1.4 and 3.3
	{
		"unknown members", "gemini",
		request(hi, `,"store":false,"metadata":{"a":"b"},"seed":7,"prompt_cache_key":"k","frequency_penalty":0,"temperature":1.0,"parallel_tool_calls":true,"user":"u"`),
		request(hi, `,"temperature":1.0`),
	},
	{"minimal effort", "gemini", request(hi, `,"reasoning_effort":"minimal"`), request(hi, `,"reasoning_effort":"low"`)},
	{"effort above high", "gemini", request(hi, `,"reasoning_effort":"xhigh"`), request(hi, `,"reasoning_effort":"high"`)},
	{"most effort", "gemini", request(hi, `,"reasoning_effort":"max"`), request(hi, `,"reasoning_effort":"high"`)},
	{"no effort", "gemini", request(hi, `,"reasoning_effort":"none"`), ``},
	{
		"models that always think", "gemini",
		`{"reasoning_effort":"none","model":"models/gemini-3.1-pro-preview","messages":[` + hi + `]}`,
		`{"reasoning_effort":"low","model":"models/gemini-3.1-pro-preview","messages":[` + hi + `]}`,
	},
	{"an effort that nobody knows", "gemini", request(hi, `,"reasoning_effort":"default"`), request(hi, ``)},
	{
		"finer control and effort", "gemini",
		request(hi, `,"reasoning_effort":"low","extra_body":{"google":{"thinking_config":{"thinking_budget":1}}}`),
		request(hi, `,"extra_body":{"google":{"thinking_config":{"thinking_budget":1}}}`),
	},
	{"options of streams", "gemini", request(hi, `,"stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}`), request(hi, `,"stream":true,"stream_options":{"include_usage":true}`)},
	{"marks of caches in tools", "gemini", request(hi, `,"tools":[{"cache_control":{"type":"ephemeral"},"type":"function","function":{"name":"f"}}]`), request(hi, `,"tools":[{"type":"function","function":{"name":"f"}}]`)},
	{
		"allowed tools", "gemini",
		request(hi, `,"tools":[`+tool+`],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`),
		request(hi, `,"tools":[`+tool+`],"tool_choice":"required"`),
	},

	// 3.5
	{
		"what is not supported", "groq",
		request(hi, `,"logprobs":true,"top_logprobs":2,"logit_bias":{"1":1},"n":1,"store":true,"verbosity":"low","seed":0`), request(hi, `,"seed":0`),
	},
	{"effort of Qwen", "groq", `{"model":"qwen/qwen3.6-27b","reasoning_effort":"high","messages":[]}`, `{"model":"qwen/qwen3.6-27b","reasoning_effort":"default","messages":[]}`},
	{"no effort of Qwen", "groq", `{"model":"qwen/qwen3.6-27b","reasoning_effort":"none","messages":[]}`, ``},
	{"effort of gpt-oss", "groq", `{"model":"openai/gpt-oss-120b","reasoning_effort":"none","messages":[]}`, `{"model":"openai/gpt-oss-120b","reasoning_effort":"low","messages":[]}`},
	{"no word for the default", "groq", `{"model":"openai/gpt-oss-120b","reasoning_effort":"default","messages":[]}`, `{"model":"openai/gpt-oss-120b","messages":[]}`},
	{"effort of others", "groq", `{"model":"groq/compound","reasoning_effort":"high","messages":[]}`, `{"model":"groq/compound","messages":[]}`},
	{"raw reasoning with tools", "groq", request(hi, `,"tools":[`+tool+`],"reasoning_format":"raw"`), request(hi, `,"tools":[`+tool+`],"reasoning_format":"parsed"`)},
	{"raw reasoning alone", "groq", request(hi, `,"reasoning_format":"raw"`), ``},
	{"two ways to ask for reasoning", "groq", request(hi, `,"include_reasoning":true,"reasoning_format":"parsed"`), request(hi, `,"reasoning_format":"parsed"`)},

	// 3.6
	{"unknown members", "cerebras", request(hi, `,"reasoning":{"effort":"low"},"enable_thinking":true,"store":true,"prompt_cache_key":"k"`), request(hi, `,"prompt_cache_key":"k"`)},
	{"effort", "cerebras", request(hi, `,"reasoning_effort":"xhigh"`), request(hi, `,"reasoning_effort":"high"`)},
	{"temperature", "cerebras", request(hi, `,"temperature":2`), request(hi, `,"temperature":1.5`)},

	// 3.9
	{
		"names", "mistral",
		request(hi, `,"max_completion_tokens":8192,"seed":9223372036854775807`), request(hi, `,"max_tokens":8192,"random_seed":9223372036854775807`),
	},
	{"its own name wins", "mistral", request(hi, `,"random_seed":1,"seed":2`), request(hi, `,"random_seed":1`)},
	{"forbidden members", "mistral", request(hi, `,"user":"u","logit_bias":{},"logprobs":false,"store":false,"stream_options":{"include_usage":true},"stop":["x"]`), request(hi, `,"stop":["x"]`)},
	{"its own choice", "mistral", request(hi, `,"tools":[`+tool+`],"tool_choice":"any"`), ``},
	{"required", "mistral", request(hi, `,"tools":[`+tool+`],"tool_choice":"required"`), ``},
	{"effort", "mistral", `{"model":"mistral-medium-3-5","reasoning_effort":"minimal","messages":[]}`, `{"model":"mistral-medium-3-5","reasoning_effort":"none","messages":[]}`},
	{"effort of others", "mistral", `{"model":"codestral-latest","reasoning_effort":"high","messages":[]}`, `{"model":"codestral-latest","messages":[]}`},

	// 3.8
	{"the bound", "deepseek", request(hi, `,"max_completion_tokens":5`), request(hi, `,"max_tokens":5`)},
	{"no effort", "deepseek", request(hi, `,"reasoning_effort":"none"`), request(hi, `,"thinking":{"type":"disabled"}`)},
	{"no effort, said twice", "deepseek", request(hi, `,"reasoning_effort":"none","thinking":{"type":"disabled"}`), request(hi, `,"thinking":{"type":"disabled"}`)},
	{"every other effort is mapped there", "deepseek", request(hi, `,"reasoning_effort":"ultra"`), ``},

	// 3.10
	{"temperature of 0", "minimax", request(hi, `,"temperature":0`), request(hi, `,"temperature":0.01`)},
	{"temperature above 1", "minimax", request(hi, `,"temperature":1.7`), request(hi, `,"temperature":1`)},
	{"temperature in range", "minimax", request(hi, `,"temperature":1.0`), ``},
	{
		"what is not supported", "minimax",
		request(hi, `,"tools":[`+tool+`],"tool_choice":"auto","parallel_tool_calls":true,"response_format":{"type":"text"},"seed":1,"presence_penalty":0,"n":1,"max_tokens":5`),
		request(hi, `,"tools":[`+tool+`],"max_completion_tokens":5`),
	},
	{"no tools, please", "minimax", request(hi, `,"tools":[`+tool+`],"tool_choice":"none"`), request(hi, ``)},
	{"effort", "minimax", request(hi, `,"reasoning_effort":"high"`), request(hi, ``)},
	{"no effort of M3", "minimax", `{"model":"MiniMax-M3","messages":[],"reasoning_effort":"none"}`, `{"model":"MiniMax-M3","messages":[],"thinking":{"type":"disabled"}}`},

	// 3.11 to 3.14
	{"the bound", "ollama", request(hi, `,"max_completion_tokens":5`), request(hi, `,"max_tokens":5`)},
	{"effort", "ollama", request(hi, `,"reasoning_effort":"ultra"`), request(hi, `,"reasoning_effort":"max"`)},
	{"effort that would be refused", "ollama", request(hi, `,"reasoning_effort":"default"`), request(hi, ``)},
	{"tools that must not be used", "ollama", request(hi, `,"tool_choice":"none","tools":[`+tool+`]`), request(hi, ``)},
	{"unknown members are ignored", "ollama", request(hi, `,"store":true,"x":[1]`), ``},
	{"unknown members are ignored", "vllm", request(hi, `,"store":true,"max_completion_tokens":1,"top_k":4,"guided_json":{}`), ``},
	{"the bound", "llamacpp", request(hi, `,"max_completion_tokens":5,"response_format":{"type":"json_object","schema":{}}`), request(hi, `,"max_tokens":5,"response_format":{"type":"json_object","schema":{}}`)},
	{"one function", "lmstudio", request(hi, `,"tools":[`+tool+`],"tool_choice":{"type":"function","function":{"name":"f"}}`), request(hi, `,"tools":[`+tool+`],"tool_choice":"required"`)},
	{"any", "lmstudio", request(hi, `,"tools":[`+tool+`],"tool_choice":"any"`), request(hi, `,"tools":[`+tool+`],"tool_choice":"required"`)},

	{"JSON without a schema", "lmstudio", request(hi, `,"response_format":{"type":"json_object"}`), request(hi, ``)},
	{"JSON with a schema", "lmstudio", request(hi, `,"response_format":{"type":"json_schema","json_schema":{}}`), ``},

	// 3.7
	{"everything", "openrouter", request(hi, `,"provider":{"order":[]},"reasoning":{"effort":"high"},"max_tokens":1,"tools":[]`), ``},
	{"everything", "", request(hi, `,"max_tokens":1,"x":null,"tools":[]`), ``},
	{"everything", "somebody", request(hi, `,"max_tokens":1,"x":null`), ``},
}

func TestMembersOfRequests(t *testing.T) {
	t.Parallel()
	check(t, members)
}

func check(t *testing.T, cases []golden) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.vendor+"/"+tc.name, func(t *testing.T) {
			t.Parallel()
			body := []byte(tc.in)
			require.True(t, rawjson.Valid(body))
			out, err := compat.Request(tc.vendor, body)
			require.NoError(t, err)
			if tc.out == "" {
				require.Same(t, &body[0], &out[0], "the body must not be copied: %s", out)
				return
			}
			require.Equal(t, tc.out, string(out))
			again, err := compat.Request(tc.vendor, out)
			require.NoError(t, err)
			require.Same(t, &out[0], &again[0], "the result must stay as it is: %s", again)
		})
	}
}

// what the operator has set reaches the provider.
func TestMembersOfTheOperatorStay(t *testing.T) {
	t.Parallel()
	in := request(hi, `,"store":true,"safety_settings":[],"seed":1,"reasoning_effort":"minimal"`)
	keep := func(name string) bool { return name == "safety_settings" || name == "reasoning_effort" }
	out, err := compat.RequestKeeping("gemini", []byte(in), keep)
	require.NoError(t, err)
	require.Equal(t, request(hi, `,"safety_settings":[],"reasoning_effort":"minimal"`), string(out))
}

func TestBodyIsNoJSON(t *testing.T) {
	t.Parallel()
	for _, in := range []string{``, `{`, `{"messages":[{"role":"user"}`, `{"a":1}x`} {
		_, err := compat.Request("groq", []byte(in))
		require.ErrorAs(t, err, new(*openai.RequestError), in)
	}
	for _, in := range []string{`null`, `[1]`, `"x"`, ` {} `} {
		out, err := compat.Request("groq", []byte(in))
		require.NoError(t, err)
		require.Equal(t, in, string(out))
	}
}

// sound and files are not cut out of a request: it is refused, so that another provider gets it whole.
func TestPartsThatAreLost(t *testing.T) {
	t.Parallel()
	user := func(parts string) string { return request(`{"role":"user","content":[`+parts+`]}`, "") }
	const (
		words = `{"type":"text","text":"a"}`
		audio = `{"type":"input_audio","input_audio":{"data":"AA","format":"wav"}}`
		file  = `{"file":{"file_data":"x"},"type":"file"}`
	)
	for vendor, lost := range map[string][]string{
		"groq": {audio, file}, "cerebras": {audio, file}, "mistral": {file}, "gemini": {}, "openai": {}, "deepseek": {}, "ollama": {},
	} {
		for _, part := range []string{audio, file} {
			out, err := compat.Request(vendor, []byte(user(words+","+part)))
			if !slices.Contains(lost, part) {
				require.NoError(t, err, vendor)
				require.Contains(t, string(out), part)
				continue
			}
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad, vendor)
			require.Equal(t, "messages", bad.Param)
		}
	}
	out, err := compat.Request("groq", []byte(user(`{"type":"text","text":"a","cache_control":{}}`)))
	require.NoError(t, err)
	require.Equal(t, user(words), string(out))
}
