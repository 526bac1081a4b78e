package gemini_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/goldentest"
)

// translated gives the native body of a request that consists of these members beside the model.
func translated(t *testing.T, model, members string) gjson.Result {
	t.Helper()
	n, err := gemini.Translator{}.Request([]byte(`{"model":"`+model+`",`+members+`}`), false)
	require.NoError(t, err)
	require.True(t, gjson.ValidBytes(n.Body))
	return gjson.ParseBytes(n.Body)
}

const hello = `"messages":[{"role":"user","content":"Hi"}]`

func TestAuthorize(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	gemini.Translator{}.Authorize(h, "k")
	require.Equal(t, http.Header{"X-Goog-Api-Key": {"k"}}, h)
}

func TestPath(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gamma-flash":        "/models/gamma-flash:generateContent",
		"models/gamma-flash": "/models/gamma-flash:generateContent",
		"a/b c?d#e:f":        "/models/a%2Fb%20c%3Fd%23e%3Af:generateContent",
		"gemini-é":           "/models/gemini-%C3%A9:generateContent",
	} {
		body := []byte(`{"model":"` + model + `",` + hello + `}`)
		n, err := gemini.Translator{}.Request(body, false)
		require.NoError(t, err)
		require.Equal(t, want, n.Path)
		require.Nil(t, n.Header)
		s, err := gemini.Translator{}.Request(body, true)
		require.NoError(t, err)
		require.Equal(t, strings.Replace(want, ":generateContent", ":streamGenerateContent?alt=sse", 1), s.Path)
		require.Equal(t, n.Body, s.Body)
	}
}

// a request with all that has a word in Gemini's protocol, and some that has none.
func TestWholeRequest(t *testing.T) {
	t.Parallel()
	n, err := gemini.Translator{}.Request([]byte(`{"model":"gemini-3.5-flash","stream":true,"stream_options":{"include_usage":true},"user":"u","metadata":{"a":1},
		"messages":[
			{"role":"system","content":"Be <brief> & kind."},
			{"role":"user","name":"ann","content":[{"type":"text","text":"What is this?"},{"type":"image_url","image_url":{"url":"data:image\/jpeg;base64,\/9j=","detail":"low"}}]},
			{"role":"assistant","content":null,"reasoning_content":"Hm.","tool_calls":[
				{"id":"call_1","type":"function","function":{"name":"get_time","arguments":"{\"city\":\"Oslo\",\"n\":12345678901234567890}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},
				{"id":"call_2","type":"function","function":{"name":"list_rooms","arguments":""}}]},
			{"role":"tool","tool_call_id":"call_1","content":"{\"time\":1.50}"},
			{"role":"tool","tool_call_id":"call_2","content":"none"},
			{"role":"developer","content":[{"type":"text","text":"Answer"},{"type":"text","text":"in French."}]},
			{"role":"user","content":"Well?"}],
		"tools":[{"type":"function","function":{"name":"get_time","description":"The time.","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}},"additionalProperties":false}}},
			{"type":"function","function":{"name":"list_rooms"}}],
		"tool_choice":"auto","parallel_tool_calls":false,"temperature":0.70,"top_p":1e-1,"top_k":40,"max_tokens":5,"max_completion_tokens":100,
		"stop":["A","","B"],"n":2,"seed":7,"presence_penalty":0.5,"frequency_penalty":-0.5,"logit_bias":{"1":2},"reasoning_effort":"medium",
		"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","$ref":"#/a"}}},
		"safety_settings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}]}`), true)
	require.NoError(t, err)
	goldentest.Compare(t, "request.json", append(n.Body, '\n'))
}

func TestContents(t *testing.T) {
	t.Parallel()
	const called = `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},`
	const dot = `{"role":"user","parts":[{"text":"."}]},` // the user speaks first
	const call = `{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},`
	cases := []struct{ name, messages, want string }{
		{
			"turns of one side become one", `{"role":"user","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"},{"role":"assistant","content":"d"}`,
			`[{"role":"user","parts":[{"text":"a"},{"text":"b"}]},{"role":"model","parts":[{"text":"c"},{"text":"d"}]}]`,
		},
		{
			"empty texts are left out", `{"role":"user","content":""},{"role":"assistant","content":null},{"role":"user","content":[{"type":"text","text":""},{"type":"text","text":"a"}]}`,
			`[{"role":"user","parts":[{"text":"a"}]}]`,
		},
		{"a content that is one part", `{"role":"user","content":{"type":"text","text":"a"}}`, `[{"role":"user","parts":[{"text":"a"}]}]`},
		{"only instructions", `{"role":"system","content":"a"},{"role":"developer","content":"b"}`, `[{"role":"user","parts":[{"text":"a\n\nb"}]}]`},
		{"a text that mentions images stays text", `{"role":"user","content":"image_url cat.png"}`, `[{"role":"user","parts":[{"text":"image_url cat.png"}]}]`},
		{"characters survive", `{"role":"user","content":"<\u00e9>\ud83c\udf0d\/\"\\ &"}`, `[{"role":"user","parts":[{"text":"<é>🌍/\"\\ &"}]}]`},
		{
			"a bare image address", `{"role":"user","content":[{"type":"image_url","image_url":"data:image/webp;base64,AA=="}]}`,
			`[{"role":"user","parts":[{"inlineData":{"mimeType":"image/webp","data":"AA=="}}]}]`,
		},
		{
			"a data URL without base64", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/svg+xml;charset=utf-8,%3Csvg%3E"}}]}`,
			`[{"role":"user","parts":[{"inlineData":{"mimeType":"image/svg+xml","data":"PHN2Zz4="}}]}]`,
		},
		{
			"a data URL without a type", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:;base64,AA=="}}]}`,
			`[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"AA=="}}]}]`,
		},
		{
			"an image elsewhere", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/a/cat.JPG?x=1"}}]}`,
			`[{"role":"user","parts":[{"fileData":{"mimeType":"image/jpeg","fileUri":"https://example.org/a/cat.JPG?x=1"}}]}]`,
		},
		{
			"an image elsewhere of an unknown type", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.org/cat"}}]}`,
			`[{"role":"user","parts":[{"fileData":{"fileUri":"https://example.org/cat"}}]}]`,
		},
		{
			"sound", `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}}]}`,
			`[{"role":"user","parts":[{"inlineData":{"mimeType":"audio/wav","data":"AA=="}}]}]`,
		},
		{
			"a file", `{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,AA==","filename":"a.pdf"}}]}`,
			`[{"role":"user","parts":[{"inlineData":{"mimeType":"application/pdf","data":"AA=="}}]}]`,
		},
		{
			"a refusal", `{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"assistant","refusal":"Never."}`,
			`[` + dot + `{"role":"model","parts":[{"text":"No."},{"text":"Never."}]}]`,
		},
		{
			"a result that is no object", called + `{"role":"tool","tool_call_id":"c","content":"12"}`,
			`[` + dot + call + `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"result":"12"}}}]}]`,
		},
		{
			"a result that is an array", called + `{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"[1,"},{"type":"text","text":"2]"}]}`,
			`[` + dot + call + `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"result":[1,2]}}}]}]`,
		},
		{
			"a result with an image", called + `{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":"data:image/png;base64,AA=="}]},{"role":"user","content":"a"}`,
			`[` + dot + call + `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{"result":""}}},{"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"a"}]}]`,
		},
		{
			"a result that names its function", `{"role":"tool","tool_call_id":"gone","name":"f","content":"{}"}`,
			`[{"role":"user","parts":[{"functionResponse":{"id":"gone","name":"f","response":{}}}]}]`,
		},
		{
			"calls as they were before", `{"role":"assistant","content":"a","function_call":{"name":"f","arguments":"{\"q\":1.0}"}},{"role":"function","name":"f","content":"b"}`,
			`[` + dot + `{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f","args":{"q":1.0}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"result":"b"}}}]}]`,
		},
		{
			"arguments that are no object", `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`,
			`[` + dot + `{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{"arguments":"{\"a\":"}},"thoughtSignature":"skip_thought_signature_validator"}]}]`,
		},
		{
			"arguments that are an object already", `{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":{"a":1.0}}}]}`,
			`[` + dot + `{"role":"model","parts":[{"functionCall":{"id":"c","name":"f","args":{"a":1.0}},"thoughtSignature":"skip_thought_signature_validator"}]}]`,
		},
		{
			"calls of one answer that share an id (R-421)", `{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"0","function":{"name":"f"}},{"id":"0","function":{"name":"g"}}]},{"role":"tool","tool_call_id":"0","content":"1"},{"role":"tool","tool_call_id":"0","content":"2"},` +
				`{"role":"assistant","tool_calls":[{"id":"0","function":{"name":"h"}}]},{"role":"tool","tool_call_id":"0","content":"3"}`,
			`[{"role":"user","parts":[{"text":"u"}]},{"role":"model","parts":[{"functionCall":{"id":"0","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"},{"functionCall":{"id":"0","name":"g","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"0","name":"f","response":{"result":"1"}}},{"functionResponse":{"id":"0","name":"g","response":{"result":"2"}}}]},` +
				`{"role":"model","parts":[{"functionCall":{"id":"0","name":"h","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},{"role":"user","parts":[{"functionResponse":{"id":"0","name":"h","response":{"result":"3"}}}]}]`,
		},
		{
			"only the first call of a step needs a signature", called + `{"role":"tool","tool_call_id":"c","content":"{}"},{"role":"assistant","tool_calls":[{"id":"d","function":{"name":"g"},"extra_content":{"google":{"thought_signature":"cw=="}}},{"id":"e","function":{"name":"h"}}]}`,
			`[` + dot + call + `{"role":"user","parts":[{"functionResponse":{"id":"c","name":"f","response":{}}}]},{"role":"model","parts":[{"functionCall":{"id":"d","name":"g","args":{}},"thoughtSignature":"cw=="},{"functionCall":{"id":"e","name":"h","args":{}}}]}]`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, translated(t, "gamma-flash", `"messages":[`+c.messages+`]`).Get("contents").Raw)
		})
	}
}

func TestSystemInstruction(t *testing.T) {
	t.Parallel()
	got := translated(t, "gamma-flash", `"messages":[{"role":"system","content":"a"},{"role":"user","content":"u"},{"role":"system","content":""},{"role":"developer","content":"b"}]`)
	require.Equal(t, `{"parts":[{"text":"a\n\nb"}]}`, got.Get("systemInstruction").Raw)
	require.False(t, translated(t, "gamma-flash", hello).Get("systemInstruction").Exists())
}

// models that take no instruction hear it from the user.
func TestModelsWithoutInstructions(t *testing.T) {
	t.Parallel()
	const system = `{"role":"system","content":"a"},`
	for messages, want := range map[string]string{
		system + `{"role":"user","content":"u"},{"role":"developer","content":"b"}`: `[{"role":"user","parts":[{"text":"a\n\nb"},{"text":"u"}]}]`,
		system + `{"role":"assistant","content":"m"}`:                               `[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"m"}]}]`,
	} {
		for _, model := range []string{"gemma-3-27b-it", "models/gemma-3n-e4b-it", "Gemma-2-9b-it"} {
			got := translated(t, model, `"messages":[`+messages+`],"response_format":{"type":"json_object"},"reasoning_effort":"high"`)
			require.Equal(t, want, got.Get("contents").Raw, model)
			require.False(t, got.Get("systemInstruction").Exists() || got.Get("generationConfig").Exists(), "%s: %s", model, got.Raw)
		}
	}
	require.True(t, translated(t, "gemma-4-31b-it", `"messages":[`+system+`{"role":"user","content":"u"}]`).Get("systemInstruction").Exists())
}

// names of functions begin as Gemini wants it, everywhere, and stay different.
func TestNamesOfFunctions(t *testing.T) {
	t.Parallel()
	got := translated(t, "gemini-3-flash", `"messages":[{"role":"user","content":"u"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"3d"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"function","name":"-x","content":"1"}],
		"tools":[{"type":"function","function":{"name":"3d"}},{"type":"function","function":{"name":"_3d"}},{"type":"function","function":{"name":"-x"}},{"type":"function","function":{"name":"_f"}}],
		"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"function":{"name":"3d"}}]}}`)
	require.Equal(t, `["_3d","__3d","_-x","_f"]`, got.Get("tools.0.functionDeclarations.#.name").Raw)
	require.Equal(t, "_3d", got.Get("contents.1.parts.0.functionCall.name").Str)
	require.Equal(t, `["_3d","_-x"]`, got.Get("contents.2.parts.#.functionResponse.name").Raw)
	require.Equal(t, `["_3d"]`, got.Get("toolConfig.functionCallingConfig.allowedFunctionNames").Raw)
	named := translated(t, "gemini-3-flash", hello+`,"tools":[{"type":"function","function":{"name":"3d"}}],"tool_choice":{"type":"function","function":{"name":"3d"}}`)
	require.Equal(t, `["_3d"]`, named.Get("toolConfig.functionCallingConfig.allowedFunctionNames").Raw)
	for native, client := range map[string]string{"_3d": "3d", "__3d": "_3d", "_-x": "-x", "_f": "_f", "f": "f", "_": "_", "3d": "3d"} {
		body := filled([]byte(`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"` + native + `"}}]},"finishReason":"STOP"}]}`))
		require.Equal(t, client, gjson.GetBytes(body, "choices.0.message.tool_calls.0.function.name").Str)
	}
}

// Models before Gemini 3 check no signatures, so they get none that is made up.
func TestBypassIsForModelsThatCheck(t *testing.T) {
	t.Parallel()
	const messages = `"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f"}}]}]`
	for model, want := range map[string]bool{"gemini-2.5-flash": false, "gemini-3.1-pro-preview": true, "models/Gemini-2.0-flash": false, "gamma-flash": true} {
		require.Equal(t, want, translated(t, model, messages).Get("contents.1.parts.0.thoughtSignature").Exists(), model)
	}
}

func TestTools(t *testing.T) { // a search never takes the place of the client's own tools
	t.Parallel()
	const f = `{"type":"function","function":{"name":"f","parameters":null}}`
	const declared = `{"functionDeclarations":[{"name":"f"}]}`
	cases := []struct{ name, members, tools, config string }{
		{"none", `"tools":[],"tool_choice":"auto"`, "", ""},
		{"function", `"tools":[` + f + `]`, `[` + declared + `]`, ""},
		{"auto", `"tools":[` + f + `],"tool_choice":"auto"`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"AUTO"}}`},
		{"no call", `"tools":[` + f + `],"tool_choice":"none"`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"NONE"}}`},
		{"required", `"tools":[` + f + `],"tool_choice":"required"`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"ANY"}}`},
		{"named", `"tools":[` + f + `],"tool_choice":{"type":"function","function":{"name":"f"}}`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`},
		{"some, may", `"tools":[` + f + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"]}}`},
		{"some, must", `"tools":[` + f + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}}`, `[` + declared + `]`, `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}}`},
		{"a choice without tools", `"tool_choice":"required"`, "", ""},
		{"search by options", `"web_search_options":{}`, `[{"googleSearch":{}}]`, ""},
		{"no search", `"web_search_options":false`, "", ""},
		{"search options beside functions", `"web_search_options":{},"tools":[` + f + `]`, `[` + declared + `]`, ""},
		{"search by type", `"tools":[{"type":"google_search"}]`, `[{"googleSearch":{}}]`, ""},
		{"search as Google writes it", `"tools":[{"googleSearch":{"timeRangeFilter":{}}}],"web_search_options":{}`, `[{"googleSearch":{"timeRangeFilter":{}}}]`, ""},
		{"search beside functions", `"tools":[{"google_search":{}},` + f + `]`, `[` + declared + `,{"googleSearch":{}}]`, `{"includeServerSideToolInvocations":true}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := translated(t, "gamma-flash", hello+","+c.members)
			require.Equal(t, c.tools, got.Get("tools").Raw)
			require.Equal(t, c.config, got.Get("toolConfig").Raw)
		})
	}
}

func TestGeneration(t *testing.T) {
	t.Parallel()
	const function = `"tools":[{"type":"function","function":{"name":"f"}}]`
	cases := []struct{ name, model, members, want string }{
		{"nothing", "gamma-flash", `"temperature":null,"n":1,"stop":null,"unknown":1,"response_format":{"type":"text"},"modalities":["text"]`, ""},
		{"one stop", "gamma-flash", `"stop":"a"`, `{"stopSequences":["a"]}`},
		{"five stops", "gamma-flash", `"stop":["a","b","c","d","e"]`, `{"stopSequences":["a","b","c","d","e"]}`},
		{"old limit", "gamma-flash", `"max_tokens":9`, `{"maxOutputTokens":9}`},
		{"new limit wins", "gamma-flash", `"max_completion_tokens":7,"max_tokens":9`, `{"maxOutputTokens":7}`},
		{"number text", "gamma-flash", `"temperature":0.70,"top_p":1.0`, `{"temperature":0.70,"topP":1.0}`},
		{"large seed", "gamma-flash", `"seed":9007199254740991`, `{"seed":4194303}`},
		{"small seed", "gamma-flash", `"seed":-2147483648`, `{"seed":-2147483648}`},
		{"JSON", "gamma-flash", `"response_format":{"type":"json_object"}`, `{"responseMimeType":"application/json"}`},
		{"images", "gamma-flash", `"modalities":["text","image"]`, `{"responseModalities":["TEXT","IMAGE"]}`},

		{"penalties (R-421)", "gemini-2.0-flash", `"presence_penalty":0,"frequency_penalty":0.5`, `{"presencePenalty":0,"frequencyPenalty":0.5}`},
		{"no penalties since 2.5 (R-421)", "gemini-2.5-flash", `"presence_penalty":0,"frequency_penalty":0.5`, ""},
		{"no penalties of a newer model (R-421)", "gamma-flash", `"presence_penalty":0.5`, ""},
		{"JSON beside functions (R-421)", "gemini-3-flash", `"response_format":{"type":"json_object"},` + function, `{"responseMimeType":"application/json"}`},
		{"JSON beside functions, before that (R-421)", "gemini-2.5-pro", `"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object"}}},` + function, ""},
		{"JSON beside a search, before that (R-421)", "gemini-2.0-flash", `"response_format":{"type":"json_object"},"web_search_options":{}`, ""},
		{"JSON alone", "gemini-2.5-pro", `"response_format":{"type":"json_object"},"tools":[]`, `{"responseMimeType":"application/json"}`},

		{"level none", "gemini-3.5-flash", `"reasoning_effort":"none"`, `{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`},
		{"level minimal", "gemini-3.5-flash", `"reasoning_effort":"minimal"`, `{"thinkingConfig":{"thinkingLevel":"MINIMAL","includeThoughts":true}}`},
		{"level low", "gemini-3.5-flash", `"reasoning_effort":"low"`, `{"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}}`},
		{"level medium", "gemini-3.5-flash", `"reasoning_effort":"medium"`, `{"thinkingConfig":{"thinkingLevel":"MEDIUM","includeThoughts":true}}`},
		{"level high", "gemini-3.5-flash", `"reasoning_effort":"high"`, `{"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}}`},
		{"level beyond", "gemini-3.5-flash", `"reasoning_effort":"xhigh"`, `{"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}}`},
		{"pro can't stop thinking", "gemini-3.1-pro-preview", `"reasoning_effort":"none"`, `{"thinkingConfig":{"thinkingLevel":"LOW"}}`},
		{"pro has no minimal level", "gemini-3.1-pro-preview", `"reasoning_effort":"minimal"`, `{"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true}}`},
		{"budget none", "gemini-2.5-flash", `"reasoning_effort":"none"`, `{"thinkingConfig":{"thinkingBudget":0}}`},
		{"budget none of pro", "gemini-2.5-pro", `"reasoning_effort":"none"`, `{"thinkingConfig":{"thinkingBudget":128}}`},
		{"budget low", "gemini-2.5-flash", `"reasoning_effort":"low"`, `{"thinkingConfig":{"thinkingBudget":1024,"includeThoughts":true}}`},
		{"budget medium", "gemini-2.5-flash", `"reasoning_effort":"medium"`, `{"thinkingConfig":{"thinkingBudget":8192,"includeThoughts":true}}`},
		{"budget high", "gemini-2.5-flash", `"reasoning_effort":"high"`, `{"thinkingConfig":{"thinkingBudget":24576,"includeThoughts":true}}`},
		{"a model that does not think", "gemini-2.0-flash", `"reasoning_effort":"high"`, ""},

		{
			"thinking_config replaces the effort", "gamma-flash", `"reasoning_effort":"high","extra_body":{"google":{"thinking_config":{"thinking_budget":10,"include_thoughts":true}}}`,
			`{"thinkingConfig":{"thinking_budget":10,"include_thoughts":true}}`,
		},
		{
			"further configuration", "gamma-flash", `"extra_body":{"google":{"response_modalities":["IMAGE"],"imageConfig":{"aspectRatio":"1:1"},"speech_config":{},"media_resolution":"LOW","unknown":1,"thinkingConfig":null},"x":1}`,
			`{"responseModalities":["IMAGE"],"imageConfig":{"aspectRatio":"1:1"},"speechConfig":{},"mediaResolution":"LOW"}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, translated(t, c.model, hello+","+c.members).Get("generationConfig").Raw)
		})
	}
}

func TestExtensions(t *testing.T) {
	t.Parallel()
	got := translated(t, "gamma-flash", hello+`,"safetySettings":[1],"extra_body":{"google":{"cached_content":"cachedContents/x"}}`)
	require.Equal(t, `[1]`, got.Get("safetySettings").Raw)
	require.Equal(t, `"cachedContents/x"`, got.Get("cachedContent").Raw)
	got = translated(t, "gamma-flash", hello+`,"safety_settings":[1],"extra_body":{"google":{"safety_settings":[2]}}`)
	require.Equal(t, `[2]`, got.Get("safetySettings").Raw)
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	user := func(part string) string {
		return `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]}`
	}
	with := func(members string) string { return `{"model":"m",` + hello + `,` + members + `}` }
	cases := []struct{ name, body, param, code string }{
		{"no JSON", `{"model":`, "", openai.CodeInvalidJSON},
		{"no object", `[1]`, "", openai.CodeInvalidType},
		{"no model", `{` + hello + `}`, "model", ""},
		{"no messages", `{"model":"m"}`, "messages", ""},
		{"messages of nothing", `{"model":"m","messages":[{"role":"user","content":""}]}`, "messages", ""},
		{"no role", `{"model":"m","messages":[1]}`, "messages[0].role", ""},
		{"unknown role", `{"model":"m","messages":[{"role":"critic","content":"a"}]}`, "messages[0].role", ""},
		{"content of a wrong type", `{"model":"m","messages":[{"role":"user","content":1}]}`, "messages[0].content", ""},
		{"part of an unknown kind", user(`{"type":"video_url","video_url":{"url":"https://x"}}`), "messages[1].content[1]", ""},
		{"single part of an unknown kind", `{"model":"m","messages":[{"role":"user","content":{"type":"x"}}]}`, "messages[0].content", ""},
		{"part that is none", user(`"b"`), "messages[1].content[1]", ""},
		{"image without address", user(`{"type":"image_url","image_url":{}}`), "messages[1].content[1]", ""},
		{"image at a plain http address", user(`{"type":"image_url","image_url":{"url":"http://example.org/a.png"}}`), "messages[1].content[1]", ""},
		{"image that can't be read", user(`{"type":"image_url","image_url":{"url":"data:image/png;base64"}}`), "messages[1].content[1]", ""},
		{"image with bad escapes", user(`{"type":"image_url","image_url":{"url":"data:image/png,%zz"}}`), "messages[1].content[1]", ""},
		{"sound without format", user(`{"type":"input_audio","input_audio":{"data":"AA=="}}`), "messages[1].content[1]", ""},
		{"file by id", user(`{"type":"file","file":{"file_id":"f1"}}`), "messages[1].content[1]", ""},
		{"instruction with an image", `{"model":"m","messages":[{"role":"system","content":[{"type":"image_url","image_url":"data:image/png;base64,AA=="}]}]}`, "messages[0].content", ""},
		{"result of no call", `{"model":"m","messages":[{"role":"tool","tool_call_id":"x","content":"a"}]}`, "messages[0].tool_call_id", ""},
		{"call of a custom tool", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"custom","custom":{"name":"f","input":"x"}}]}]}`, "messages[0].tool_calls[0]", ""},
		{"call without a name", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{}}]}]}`, "messages[0].tool_calls[0].function.name", ""},
		{"old call without a name", `{"model":"m","messages":[{"role":"assistant","function_call":{}}]}`, "messages[0].function_call.name", ""},
		{"old functions", with(`"functions":[{"name":"f"}]`), "functions", ""},
		{"custom tool", with(`"tools":[{"type":"custom","custom":{"name":"f"}}]`), "tools[0].type", ""},
		{"function without a name", with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", ""},
		{"unknown choice", with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"perhaps"`), "tool_choice", ""},
		{"choice of no function", with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function"}`), "tool_choice.function.name", ""},
		{"choice of no functions", with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[]}}`), "tool_choice.allowed_tools.tools", ""},
		{"number in quotes", with(`"temperature":"1"`), "temperature", ""},
		{"six stops", with(`"stop":["a","b","c","d","e","f"]`), "stop", ""},
		{"stop of a wrong type", with(`"stop":1`), "stop", ""},
		{"stop that is no text", with(`"stop":["a",1]`), "stop[1]", ""},
		{"unknown format", with(`"response_format":{"type":"grammar"}`), "response_format.type", ""},
		{"format without schema", with(`"response_format":{"type":"json_schema","json_schema":{}}`), "response_format.json_schema.schema", ""},
		{"unknown output", with(`"modalities":["text","audio"]`), "modalities[1]", ""},
		{"unknown format with a long name", with(`"response_format":{"type":"` + strings.Repeat("é", 200) + `"}`), "response_format.type", ""},
		{"unknown effort", with(`"reasoning_effort":"heroic"`), "reasoning_effort", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := gemini.Translator{}.Request([]byte(c.body), false)
			refused, ok := errors.AsType[*openai.RequestError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, c.param, refused.Param)
			if c.code == "" {
				c.code = openai.CodeInvalidValue
			}
			require.Equal(t, c.code, refused.Code)
			require.Contains(t, refused.Message, c.param)
			require.Less(t, len(refused.Message), 200)
		})
	}
}
