package responses_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/responses"
)

// chatOf says a body in Chat Completions.
func chatOf(t *testing.T, body string) string {
	t.Helper()
	chat, err := responses.Form{}.Chat([]byte(body))
	require.NoError(t, err)
	require.True(t, rawjson.Valid(chat), string(chat))
	return string(chat)
}

// an input is a conversation, however it is written.
func TestConversation(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ input, want string }{
		"text":       {`"h\u00e9"`, `{"role":"user","content":"h\u00e9"}`},
		"short":      {`[{"role":"user","content":"a"}]`, `{"role":"user","content":"a"}`},
		"roles":      {`[{"role":"developer","content":"a"},{"role":"system","content":"b"},{"role":"assistant","content":"c"}]`, `{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"assistant","content":"c"}`},
		"texts":      {`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]`, `{"role":"user","content":"a\n\nb"}`},
		"no content": {`[{"role":"user","content":"a"},{"role":"assistant","content":[]}]`, `{"role":"user","content":"a"},{"role":"assistant","content":""}`},
		"a refusal":  {`[{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]},{"role":"user","content":"a"}]`, `{"role":"assistant","content":"no"},{"role":"user","content":"a"}`},
		"an image": {
			`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:x","detail":"low"},{"type":"input_image","image_url":"https://x","file_id":null}]}]`,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:x","detail":"low"}},{"type":"image_url","image_url":{"url":"https://x"}}]}`,
		},
		"a file and sound": {
			`[{"role":"user","content":[{"type":"input_file","filename":"f.pdf","file_data":"data:y"},{"type":"input_audio","input_audio":{"data":"z","format":"wav"}}]}]`,
			`{"role":"user","content":[{"type":"file","file":{"file_data":"data:y","filename":"f.pdf"}},{"type":"input_audio","input_audio":{"data":"z","format":"wav"}}]}`,
		},
		"parts of Chat Completions": {
			`[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"type":"file","file":{"file_data":"d"}}]}]`,
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"u"}},{"type":"file","file":{"file_data":"d"}}]}`,
		},
		"what only its maker can read": {
			`[{"role":"user","content":"a"},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"type":"web_search_call","id":"ws_1"},{"role":"assistant","content":"b"}]`,
			`{"role":"user","content":"a"},{"role":"assistant","content":"b"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, `{"model":"m","messages":[`+tt.want+`]}`, chatOf(t, `{"model":"m","input":`+tt.input+`}`))
		})
	}
}

// words makes items of a shorthand: "u" the user, "a" the assistant, "r" reasoning, "c" a call, "o" a result; then the text or the id.
func words(line string) string {
	var items []string
	for word := range strings.FieldsSeq(line) {
		text := word[1:]
		items = append(items, map[byte]string{
			'u': fmt.Sprintf(`{"role":"user","content":%q}`, text),
			'a': fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, text),
			'r': `{"type":"reasoning","summary":[]}`,
			'c': fmt.Sprintf(`{"type":"function_call","call_id":%q,"name":"f","arguments":"{}"}`, text),
			'o': fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"r%s"}`, text, text),
		}[word[0]])
	}
	return "[" + strings.Join(items, ",") + "]"
}

// shorthand says messages in the same way; "A" is text with calls behind it, "t" a result.
func shorthand(chat string) string {
	var out []string
	messages := rawjson.Get([]byte(chat), "messages")
	for span := range rawjson.Elements(messages) {
		m := span.Of(messages)
		text := rawjson.Text(rawjson.Get(m, "content"))
		switch rawjson.Text(rawjson.Get(m, "role")) {
		case "user":
			out = append(out, "u"+strings.ReplaceAll(text, " ", "_"))
		case "tool":
			out = append(out, "t"+rawjson.Text(rawjson.Get(m, "tool_call_id"))+"="+strings.ReplaceAll(text, " ", "_"))
		default:
			var ids []string
			calls := rawjson.Get(m, "tool_calls")
			for call := range rawjson.Elements(calls) {
				ids = append(ids, rawjson.Text(rawjson.Get(call.Of(calls), "id")))
			}
			out = append(out, "a"+text+"["+strings.Join(ids, ",")+"]")
		}
	}
	return strings.Join(out, " ")
}

// calls that follow a text are one message with it, and results follow their calls, whatever the order of the items.
func TestCallsAndResults(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ sent, want string }{
		"parallel":                    {"uq ax c1 c2 o1 o2 un", "uq ax[1,2] t1=r1 t2=r2 un"},
		"results in another order":    {"uq c1 c2 o2 o1", "uq a[1,2] t1=r1 t2=r2"},
		"one after the other":         {"uq c1 o1 c2 o2", "uq a[1] t1=r1 a[2] t2=r2"},
		"thoughts in between":         {"uq r ax r c1 r c2 o1 o2", "uq ax[1,2] t1=r1 t2=r2"},
		"the user speaks in between":  {"uq c1 un o1", "uq a[1] t1=r1 un"},
		"text behind the call":        {"uq c1 ax o1", "uq a[1] t1=r1 ax[]"},
		"two texts":                   {"uq ax ay c1 o1", "uq ax[] ay[1] t1=r1"},
		"an orphaned call":            {"uq c1 un", "uq a[1] t1=(no_result) un"},
		"one of two":                  {"uq c1 c2 o2", "uq a[1,2] t1=(no_result) t2=r2"},
		"a result without its call":   {"uq o9", "uq uResult_of_the_tool_call_9:\n\nr9"},
		"a result before its call":    {"uq o1 c1", "uq uResult_of_the_tool_call_1:\n\nr1 a[1] t1=(no_result)"},
		"a second result":             {"uq c1 o1 o1", "uq a[1] t1=r1 uResult_of_the_tool_call_1:\n\nr1"},
		"ids that collide":            {"uq c1 c1 o1 o1", "uq a[1,1_2] t1=r1 t1_2=r1"},
		"ids that collide with those": {"uq c1_2 c1 c1 o1 o1 o1_2", "uq a[1_2,1,1_3] t1_2=r1_2 t1=r1 t1_3=r1"},
		"the same id in each turn":    {"uq c1 o1 un c1 o1", "uq a[1] t1=r1 un a[1] t1=r1"},
		"the first one orphaned":      {"uq c1 un c1 o1", "uq a[1] t1=(no_result) un a[1] t1=r1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, shorthand(chatOf(t, `{"input":`+words(tt.sent)+`}`)))
		})
	}
}

// what a model thought goes back to it while it works with tools, and no longer.
func TestThoughts(t *testing.T) {
	t.Parallel()
	reasoning := func(text string) string {
		return `{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"` + text + `"}],"encrypted_content":"e"}`
	}
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"` + id + `","output":"x"}`
	}
	const user = `{"role":"user","content":"q"}`
	for name, tt := range map[string]struct {
		input string
		want  []string // thoughts of the messages of the model
	}{
		"in the loop":         {user + "," + reasoning("a") + "," + call("1") + "," + reasoning("b") + "," + call("2"), []string{"a", "b"}},
		"two at once":         {user + "," + reasoning("a") + "," + reasoning("b") + "," + call("1"), []string{`a\n\nb`}},
		"with text between":   {user + "," + reasoning("a") + `,{"role":"assistant","content":"t"},` + reasoning("b") + "," + call("1"), []string{`a\n\nb`}},
		"the loop is over":    {user + "," + reasoning("a") + "," + call("1") + "," + user, []string{""}},
		"before a text":       {user + "," + reasoning("a") + `,{"role":"assistant","content":"t"}`, []string{""}},
		"of somebody else":    {user + "," + reasoning("a") + "," + user + "," + call("1"), []string{""}},
		"encrypted":           {user + `,{"type":"reasoning","summary":[],"encrypted_content":"e"},` + call("1"), []string{""}},
		"as reasoning texts":  {user + `,{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}]},` + call("1"), []string{"a"}},
		"behind the last one": {user + "," + call("1") + "," + reasoning("a"), []string{""}},
	} {
		body := `{"input":[` + tt.input + `]}`
		chat := chatOf(t, body)
		require.NotContains(t, chat, `"e"`, name)
		var got []string
		messages := rawjson.Get([]byte(chat), "messages")
		for span := range rawjson.Elements(messages) {
			if m := span.Of(messages); rawjson.Is(rawjson.Get(m, "role"), "assistant") {
				got = append(got, strings.Trim(string(rawjson.Get(m, "reasoning_content")), `"`))
			}
		}
		require.Equal(t, tt.want, got, name)
	}
}

// what a tool gives may be parts, of which images go to the user, or any JSON.
func TestResults(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]string{
		`"a"`:  `{"role":"tool","tool_call_id":"c","content":"a"}`,
		`null`: `{"role":"tool","tool_call_id":"c","content":""}`,
		`[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"u"},{"type":"input_text","text":"b"}]`: `{"role":"tool","tool_call_id":"c","content":"a\n\nb"},` +
			`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`,
		`{"x":"1"}`: `{"role":"tool","tool_call_id":"c","content":"{\"x\":\"1\"}"}`,
	} {
		chat := chatOf(t, `{"input":[{"role":"user","content":"q"},{"type":"function_call","id":"c","name":"f","arguments":{"a":1}},{"type":"function_call_output","call_id":"c","output":`+output+`}]}`)
		require.Equal(t, `{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},`+want+`]}`, chat)
	}
}

// parameters take their names in Chat Completions; what has none there is left out.
func TestParameters(t *testing.T) {
	t.Parallel()
	chat := chatOf(t, `{"model":"m","stream":true,"instructions":"be brief","input":"q","max_output_tokens":9,"temperature":0.10,"top_p":null,"reasoning":{"effort":"low","summary":"auto"},
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","strict":true,"schema":{"a":1}}},"include":["message.output_text.logprobs"],"top_logprobs":2,
		"truncation":"auto","metadata":{"k":"v"},"store":false,"service_tier":"flex","client_metadata":{},"prompt_cache_key":"k","parallel_tool_calls":false,"tool_choice":"auto","session_id":"s","stop":["x"]}`)
	require.Equal(t, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"q"}],`+
		`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"a":1}}},"reasoning_effort":"low","max_tokens":9,"temperature":0.10,"stop":["x"],`+
		`"logprobs":true,"top_logprobs":2}`, chat)
	require.Equal(t, `{"messages":[{"role":"user","content":"q"}],"response_format":{"type":"json_object"}}`, chatOf(t, `{"input":"q","text":{"format":{"type":"json_object"}}}`))
	require.Equal(t, `{"messages":[{"role":"user","content":"q"}]}`, chatOf(t, `{"input":"q","text":{"format":{"type":"text"}},"instructions":""}`))
}

// functions, custom tools and namespaces are functions; hosted tools are left out beside them.
func TestTools(t *testing.T) {
	t.Parallel()
	const offered = `{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false},{"type":"web_search"},` +
		`{"type":"custom","name":"p","description":"D.","format":{"type":"grammar","syntax":"lark","definition":"start: /a/"}},` +
		`{"type":"namespace","name":"crew","tools":[{"type":"function","name":"hire","parameters":null},{"type":"mcp"}]},{"type":"function","function":{"name":"g","parameters":{}}}`
	const input = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`
	const f = `{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":false}}`
	const p = `{"type":"function","function":{"name":"p","description":"D.\n\nThe input has to match this grammar (lark):\nstart: /a/","parameters":` + input + `}}`
	const hire, g = `{"type":"function","function":{"name":"crew__hire"}}`, `{"type":"function","function":{"name":"g","parameters":{}}}`
	for choice, want := range map[string]string{
		`"auto"`:                            `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `],"tool_choice":"auto"`,
		`null`:                              `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `]`,
		`"required"`:                        `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `],"tool_choice":"required"`,
		`{"type":"function","name":"hire"}`: `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `],"tool_choice":{"type":"function","function":{"name":"crew__hire"}}`,
		`{"type":"custom","name":"p"}`:      `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `],"tool_choice":{"type":"function","function":{"name":"p"}}`,
		`{"type":"function","function":{"name":"g"}}`:                                                               `"tools":[` + f + `,` + p + `,` + hire + `,` + g + `],"tool_choice":{"type":"function","function":{"name":"g"}}`,
		`{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}`: `"tools":[` + g + `],"tool_choice":"required"`,
	} {
		require.Equal(t, `{"messages":[{"role":"user","content":"q"}],`+want+`}`, chatOf(t, `{"input":"q","tools":[`+offered+`],"tool_choice":`+choice+`}`), choice)
	}
	require.Equal(t, `{"messages":[{"role":"user","content":"q"}]}`, chatOf(t, `{"input":"q","tools":[{"type":"web_search"},{"type":"file_search"}],"tool_choice":"auto","parallel_tool_calls":true}`))
	require.Equal(t, `{"messages":[{"role":"user","content":"q"}],"tools":[`+g+`]}`, chatOf(t, `{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"g","parameters":{}}]},{"role":"user","content":"q"}]}`))
}

// each tool has a function of its own, by which it is found again, also in the history.
func TestNamesOfTools(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 60)
	body := `{"tools":[{"type":"function","name":"a__b"},{"type":"namespace","name":"a","tools":[{"type":"function","name":"b"}]},{"type":"namespace","name":"` + long +
		`","tools":[{"type":"custom","name":"çx"}]},{"type":"function","name":"twice"},{"type":"function","name":"twice","description":"2"}],` +
		`"input":[{"type":"function_call","call_id":"1","name":"b","namespace":"a","arguments":""},{"type":"custom_tool_call","call_id":"2","namespace":"` + long + `","name":"çx","input":"t\n"}]}`
	read, err := responses.Read([]byte(body))
	require.NoError(t, err)
	seen := map[string]bool{}
	tools := rawjson.Get(read.Chat(), "tools")
	for span := range rawjson.Elements(tools) {
		flat := rawjson.Text(rawjson.Get(rawjson.Get(span.Of(tools), "function"), "name"))
		require.Regexp(t, `^[A-Za-z0-9_-]{1,64}$`, flat)
		require.False(t, seen[flat])
		seen[flat] = true
		tool, ok := read.Tools.Find(flat)
		require.True(t, ok)
		require.Equal(t, tool.Name == "çx", tool.Custom)
	}
	require.Len(t, seen, 4)
	_, ok := read.Tools.Find("unknown")
	require.False(t, ok)
	require.Contains(t, string(read.Chat()), `"arguments":"{\"input\":\"t\\n\"}"`)
	calls := 0
	for name := range seen {
		calls += strings.Count(string(read.Chat()), `"function":{"name":"`+name+`","arguments"`)
	}
	require.Equal(t, 2, calls)
}

// a model that leaves the namespace out means the one that has a member of this name.
func TestNamesWithoutNamespace(t *testing.T) {
	t.Parallel()
	read, err := responses.Read([]byte(`{"input":"q","tools":[{"type":"function","name":"fire"},{"type":"namespace","name":"crew","tools":[{"type":"function","name":"hire"},` +
		`{"type":"function","name":"fire"},{"type":"function","name":"list"}]},{"type":"namespace","name":"rooms","tools":[{"type":"function","name":"list"}]}]}`))
	require.NoError(t, err)
	tool, ok := read.Tools.Find("hire")
	require.True(t, ok)
	require.Equal(t, []string{"crew", "hire"}, []string{tool.Space, tool.Name})
	tool, ok = read.Tools.Find("fire")
	require.True(t, ok)
	require.Empty(t, tool.Space)
	_, ok = read.Tools.Find("list")
	require.False(t, ok, "two have it")
}

// what can't be done is said, with the member at fault.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct{ param, has string }{
		``:                                    {"", "empty"},
		`[]`:                                  {"", "object"},
		`{`:                                   {"", "JSON"},
		"{\"input\":\"\xff\"}":                {"", "UTF-8"},
		`{"model":"m"}`:                       {"input", "missing"},
		`{"input":5}`:                         {"input", "array of items"},
		`{"input":[]}`:                        {"input", "at least one"},
		`{"input":""}`:                        {"input", "empty"},
		`{"input":"a","input":"b"}`:           {"input", "more than once"},
		`{"input":"a","Model":"m"}`:           {"Model", "'model'"},
		`{"input":[5]}`:                       {"input[0]", "object"},
		`{"input":[{}]}`:                      {"input[0].type", "missing"},
		`{"input":"a","model":1}`:             {"model", "string"},
		`{"input":"a","stream":"x"}`:          {"stream", "boolean"},
		`{"input":"a","metadata":[]}`:         {"metadata", "object"},
		`{"input":"a","include":"x"}`:         {"include", "array"},
		`{"input":"a","max_output_tokens":0}`: {"max_output_tokens", "positive"},
		`{"input":"a","conversation":"c"}`:    {"conversation", "not supported"},
		`{"input":"a","prompt":{"id":"p"}}`:   {"prompt", "not supported"},
		`{"input":"a","background":true,"store":false}`:                                                                            {"background", "stored"},
		`{"input":"a","text":{"format":{"type":"x"}}}`:                                                                             {"text.format.type", "json_schema"},
		`{"input":[{"role":"user","content":"a"},{"type":"wish"}]}`:                                                                {"input[1].type", "wish"},
		`{"input":[{"role":"tool","content":"a"}]}`:                                                                                {"input[0].role", "assistant"},
		`{"input":[{"role":"user","content":7}]}`:                                                                                  {"input[0].content", "parts"},
		`{"input":[{"role":"user","content":[{"type":"video"}]}]}`:                                                                 {"input[0].content[0].type", "video"},
		`{"input":[{"role":"user","content":[{"type":"input_text","text":7}]}]}`:                                                   {"input[0].content[0].text", "string"},
		`{"input":[{"role":"user","content":[{"type":"input_image","file_id":"f"}]}]}`:                                             {"input[0].content[0].image_url", "address"},
		`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"f"}]}]}`:                                              {"input[0].content[0].file_data", "file"},
		`{"input":[{"type":"function_call","name":"f","arguments":""}]}`:                                                           {"input[0].call_id", "not empty"},
		`{"input":[{"type":"function_call","call_id":"c","arguments":""}]}`:                                                        {"input[0].name", "not empty"},
		`{"input":[{"type":"function_call_output","output":""}]}`:                                                                  {"input[0].call_id", "not empty"},
		`{"input":"a","tools":{}}`:                                                                                                 {"tools", "array"},
		`{"input":"a","tools":[5]}`:                                                                                                {"tools[0]", "object"},
		`{"input":"a","tools":[{"name":"f"}]}`:                                                                                     {"tools[0].type", "missing"},
		`{"input":"a","tools":[{"type":"function"}]}`:                                                                              {"tools[0].name", "missing"},
		`{"input":"a","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom"}]}]}`:                                      {"tools[0].tools[0].name", "missing"},
		`{"input":"a","tool_choice":{"type":"web_search"}}`:                                                                        {"tool_choice", "web_search"},
		`{"input":"a","tools":[{"type":"file_search"}],"tool_choice":{"type":"file_search"}}`:                                      {"tool_choice", "file_search"},
		`{"input":"a","tools":[{"type":"file_search"}],"tool_choice":"required"}`:                                                  {"tool_choice", "file_search"},
		`{"input":"a","tool_choice":"required"}`:                                                                                   {"tool_choice", "there is none"},
		`{"input":"a","tool_choice":"x"}`:                                                                                          {"tool_choice", "must be"},
		`{"input":"a","tool_choice":5}`:                                                                                            {"tool_choice", "must be"},
		`{"input":"a","tool_choice":{}}`:                                                                                           {"tool_choice.type", "missing"},
		`{"input":"a","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}}`:                      {"tool_choice", "'g'"},
		`{"input":"a","tools":[{"type":"mcp"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp"}]}}`: {"tool_choice", "mcp"},
	} {
		err := responses.Form{}.Scan([]byte(body), &contract.Request{})
		var bad *openai.RequestError
		require.ErrorAs(t, err, &bad, body)
		require.Equal(t, want.param, bad.Param, body)
		require.Contains(t, bad.Message, want.has, body)
		require.NotEmpty(t, bad.Code, body)
	}
	_, err := responses.Form{}.Chat([]byte(`{"input":[{"type":"item_reference","id":"msg_1"}]}`))
	var bad *openai.RequestError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{"input[0].id", "item_not_found"}, []string{bad.Param, bad.Code})
	require.Contains(t, bad.Message, "msg_1")
}

// many items cost no more than they have to.
func TestManyItems(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("uq c1 o1 ", 700)
	require.Equal(t, strings.Repeat("uq a[1] t1=r1 ", 700), shorthand(chatOf(t, `{"input":`+words(line)+`}`))+" ")
	const many = 20_000 // with the same id, at the same time
	chat := chatOf(t, `{"input":`+words("uq "+strings.Repeat("c1 ", many)+strings.Repeat("o1 ", many))+`}`)
	require.Equal(t, many, strings.Count(chat, `"role":"tool"`))
	require.Equal(t, many, strings.Count(chat, `"content":"r1"`))
}
