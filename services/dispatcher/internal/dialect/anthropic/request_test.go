package anthropic_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

const user = `{"role":"user","content":"hi"}`

// asked builds a request from members, with one message unless they have messages.
func asked(model string, members ...string) string {
	all := strings.Join(members, ",")
	if !strings.Contains(all, `"messages":`) {
		members = append([]string{`"messages":[` + user + `]`}, members...)
	}
	return `{"model":"` + model + `",` + strings.Join(members, ",") + `}`
}

func request(tb testing.TB, body string, stream bool) string {
	tb.Helper()
	got, err := anthropic.Translator{}.Request([]byte(body), stream)
	require.NoError(tb, err)
	require.True(tb, rawjson.Valid(got.Body), "%s", got.Body)
	require.Equal(tb, "/v1/messages", got.Path)
	require.Equal(tb, []string{"2023-06-01"}, got.Header["Anthropic-Version"])
	return string(got.Body)
}

func messages(list ...string) string { return `"messages":[` + strings.Join(list, ",") + `]` }

// The whole body of a plain request.
func TestPlainRequest(t *testing.T) {
	t.Parallel()
	body := asked("claude-sonnet-4-5", messages(`{"role":"system","content":"Be brief."}`, user), `"max_tokens":100`, `"seed":9223372036854775807`, `"x":1`, `"n":1`)
	const want = `{"model":"claude-sonnet-4-5","max_tokens":100,"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]`
	require.Equal(t, want+`}`, request(t, body, false))
	require.Equal(t, want+`,"stream":true}`, request(t, body, true))
}

const (
	oneCall  = `{"role":"assistant","content":null,"tool_calls":[{"id":"toolu_1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.50}"}}]}`
	twoCalls = `{"role":"assistant","content":"Two.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},` +
		`{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`
	hiBlock = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
)

// calls is an answer with calls of these ids, results are theirs.
func calls(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, `{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}}`)
	}
	return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(all, ",") + `]}`
}

func results(ids ...string) string {
	var all strings.Builder
	for _, id := range ids {
		all.WriteString(`,{"role":"tool","tool_call_id":"` + id + `","content":"` + id + `"}`)
	}
	return all.String()
}

func callBlock(id string) string {
	return `{"type":"tool_use","id":"` + id + `","name":"f","input":{}}`
}

func callBlocks(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, callBlock(id))
	}
	return `{"role":"assistant","content":[` + strings.Join(all, ",") + `]}`
}

func resultBlocks(ids ...string) string {
	var all []string
	for _, id := range ids {
		all = append(all, `{"type":"tool_result","tool_use_id":"`+id+`","content":"`+id+`"}`)
	}
	return `{"role":"user","content":[` + strings.Join(all, ",") + `]}`
}

// Histories become turns (REQ-06, TOOL-07).
func TestMessages(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"text parts", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":""},{"type":"text","text":"b"}]}`, `{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{"one part without an array", `{"role":"user","content":{"type":"text","text":"a"}}`, `{"role":"user","content":[{"type":"text","text":"a"}]}`},
		{"escapes survive", `{"role":"user","content":"\u00e9\n\ud83c\udf0d\/ 안녕"}`, `{"role":"user","content":[{"type":"text","text":"\u00e9\n\ud83c\udf0d\/ 안녕"}]}`},
		{"one side twice", user + `,{"role":"user","content":"there"}`, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"there"}]}`},
		{"the assistant first", `{"role":"assistant","content":"Hello."},` + user, `{"role":"user","content":[{"type":"text","text":"."}]},{"role":"assistant","content":[{"type":"text","text":"Hello."}]},` + hiBlock},
		{"nothing but the system", `{"role":"developer","content":"x"}`, `{"role":"user","content":[{"type":"text","text":"."}]}`},
		{"null, empty, blank and absent contents", user + `,{"role":"assistant","content":null},{"role":"assistant","content":""},{"role":"assistant","content":" \n\t"},{"role":"assistant","content":[]},{"role":"assistant"},{"role":"assistant","content":"\u00a0"}`, hiBlock},
		{
			"a call without content", user + `,` + oneCall + `,{"role":"tool","tool_call_id":"toolu_1","content":"12"}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"a": 1.50}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"12"}]}`,
		},
		{
			"results come first, in one turn", user + `,` + twoCalls + `,{"role":"tool","tool_call_id":"a","content":"1"},{"role":"user","content":"and?"},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"2"}]},` + user,
			hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"Two."},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"g","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]},{"type":"text","text":"and?"},{"type":"text","text":"hi"}]}`,
		},
		{
			"results that are empty, images or failures", user + `,` + calls("a", "b", "c", "d") + `,{"role":"tool","tool_call_id":"a","content":""},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":""}]},` +
				`{"role":"tool","tool_call_id":"c","content":[{"type":"image_url","image_url":{"url":"https://h/a.png"}}]},{"role":"tool","tool_call_id":"d","content":"no","is_error":true,"cache_control":{"type":"ephemeral"}}`,
			hiBlock + `,` + callBlocks("a", "b", "c", "d") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"},` +
				`{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"url","url":"https://h/a.png"}}]},` +
				`{"type":"tool_result","tool_use_id":"d","content":"no","is_error":true,"cache_control":{"type":"ephemeral"}}]}`,
		},
		{
			"calls of several answers that share an id (R-420)", user + `,` + calls("0") + results("0") + `,` + calls("0", "1") + results("1", "0") + `,` + calls("0_2") + results("0_2"),
			hiBlock + `,` + callBlocks("0") + `,` + resultBlocks("0") + `,` + callBlocks("0_2", "1") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"1"},{"type":"tool_result","tool_use_id":"0_2","content":"0"}]},` +
				callBlocks("0_2_2") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"0_2_2","content":"0_2"}]}`,
		},
		{
			"calls of one answer that share an id, or have none (R-420)", user + `,` + calls("", "0", "0", "") + `,{"role":"tool","tool_call_id":"0","content":"1"},{"role":"tool","content":"2"},{"role":"tool","tool_call_id":"0","content":"3"},{"role":"tool","tool_call_id":"","content":"4"}`,
			hiBlock + `,` + callBlocks("_e3b0c44298fc", "0", "0_2", "_e3b0c44298fc_2") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"0","content":"1"},{"type":"tool_result","tool_use_id":"_e3b0c44298fc","content":"2"},` +
				`{"type":"tool_result","tool_use_id":"0_2","content":"3"},{"type":"tool_result","tool_use_id":"_e3b0c44298fc_2","content":"4"}]}`,
		},
		{
			"a call whose result was lost (R-420)", user + `,` + calls("0") + `,` + user + `,` + calls("0") + results("0"),
			hiBlock + `,` + callBlocks("0") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"0","content":"There is no result.","is_error":true},{"type":"text","text":"hi"}]},` +
				callBlocks("0_2") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"0_2","content":"0"}]}`,
		},
		{
			"a call without a result at the end (R-420)", user + `,` + calls("a"),
			hiBlock + `,` + callBlocks("a") + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"There is no result.","is_error":true}]}`,
		},
		{
			"a result that comes late, and one that is given twice (R-420)", user + `,` + calls("a", "b") + `,{"role":"tool","tool_call_id":"b","content":"old"}` + results("b") + `,{"role":"assistant","content":"A"},` + user + results("a"),
			hiBlock + `,{"role":"assistant","content":[` + callBlock("a") + `,` + callBlock("b") + `]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":"b"},{"type":"tool_result","tool_use_id":"a","content":"a"}]},` +
				`{"role":"assistant","content":[{"type":"text","text":"A"}]},` + hiBlock,
		},
		{
			"a result without a call", user + results("a"), `{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"a"},{"type":"text","text":"hi"}]}`,
		},
		{
			"calls in two forms (R-420)", user + `,{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"tool_use","id":"a","name":"f","input":{"q":1}}],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}` + results("a"),
			hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"A"},` + callBlock("a") + `]},` + resultBlocks("a"),
		},
		{
			"calls and results in Anthropic's form alone (R-420)", user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"r"},{"type":"tool_use","id":"a","name":"f","input":{"q":1},"cache_control":{"type":"ephemeral"}},{"type":"redacted_thinking","data":"d"},{"type":"redacted_thinking"},{"type":"thinking","thinking":"s","signature":"g"},{"type":"tool_use","id":"b","name":"f","input":null}]},` +
				`{"role":"user","content":[{"type":"text","text":"hi"},{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"}]},{"type":"tool_result","tool_use_id":"a","content":"y","is_error":true}]}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"},{"type":"thinking","thinking":"s","signature":"g"},{"type":"tool_use","id":"a","name":"f","input":{"q":1},"cache_control":{"type":"ephemeral"}},` + callBlock("b") + `]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"x"}]},{"type":"tool_result","tool_use_id":"a","content":"y","is_error":true},{"type":"text","text":"hi"}]}`,
		},
		{
			"arguments that are null, spaces or an object", user + `,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f"}},{"id":"b","function":{"name":"f","arguments":" "}},{"id":"c","function":{"name":"f","arguments":"null"}},{"id":"d","function":{"name":"f","arguments":{"n":12345678901234567890}}}]}` + results("a", "b", "c", "d"),
			hiBlock + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}},{"type":"tool_use","id":"c","name":"f","input":{}},{"type":"tool_use","id":"d","name":"f","input":{"n":12345678901234567890}}]},` + resultBlocks("a", "b", "c", "d"),
		},
		{
			"arguments that are broken, no object or too much (R-420)", user + `,{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"a\": \"cut \u00e9"}},{"id":"b","function":{"name":"f","arguments":"[1]"}},{"id":"c","function":{"name":"f","arguments":"{} {}"}},{"id":"d","function":{"name":"f","arguments":7}}]}` + results("a", "b", "c", "d"),
			hiBlock + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"arguments":"{\"a\": \"cut é"}},{"type":"tool_use","id":"b","name":"f","input":{"arguments":"[1]"}},{"type":"tool_use","id":"c","name":"f","input":{"arguments":"{} {}"}},{"type":"tool_use","id":"d","name":"f","input":{"arguments":"7"}}]},` + resultBlocks("a", "b", "c", "d"),
		},
		{
			"ids that the API refuses", user + `,{"role":"assistant","tool_calls":[{"id":"call.1","function":{"name":"f"}},{"id":"call:1","function":{"name":"f"}}]},{"role":"tool","tool_call_id":"call:1","content":"x"},{"role":"tool","tool_call_id":"call.1","content":"y"}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"tool_use","id":"call_1_e8b7b7b3793f","name":"f","input":{}},{"type":"tool_use","id":"call_1_0af6315558b4","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_1_0af6315558b4","content":"x"},{"type":"tool_result","tool_use_id":"call_1_e8b7b7b3793f","content":"y"}]}`,
		},
		{"an answer to be continued", user + `,{"role":"assistant","content":[{"type":"text","text":"One "},{"type":"text","text":"two \u00e9 \n"}]}`, hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"One "},{"type":"text","text":"two é"}]}`},
		{"an answer that is over keeps its end", user + `,{"role":"assistant","content":"two \n"},` + user, hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"two \n"}]},` + hiBlock},
		{"refusals are said", user + `,{"role":"assistant","content":null,"refusal":"No."},{"role":"assistant","content":[{"type":"refusal","refusal":"Never."}]}`, hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"No."},{"type":"text","text":"Never."}]}`},
		{"reasoning without a signature", user + `,{"role":"assistant","content":"A","reasoning_content":"r","reasoning":"r"}`, hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"A"}]}`},
		{
			"thinking that is ours", user + `,{"role":"assistant","content":"A","reasoning_details":[{"type":"reasoning.text","text":"r\n","signature":"s1","format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"d","format":"anthropic-claude-v1","index":1}]}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"thinking","thinking":"r\n","signature":"s1"},{"type":"redacted_thinking","data":"d"},{"type":"text","text":"A"}]}`,
		},
		{
			"thinking in pieces", user + `,{"role":"assistant","content":"A","reasoning_details":[{"type":"reasoning.text","text":"a","format":"anthropic-claude-v1","index":0},{"type":"reasoning.text","text":"b","signature":null,"format":"anthropic-claude-v1","index":0},` +
				`{"type":"reasoning.text","signature":"s1","format":"anthropic-claude-v1","index":0},{"type":"reasoning.text","text":"","signature":"s2","format":"anthropic-claude-v1","index":1}]}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"thinking","thinking":"ab","signature":"s1"},{"type":"thinking","thinking":"","signature":"s2"},{"type":"text","text":"A"}]}`,
		},
		{
			"thinking of others", user + `,{"role":"assistant","content":"A","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s","format":"google-gemini-v1"},{"type":"reasoning.text","text":"a","signature":"s"},` +
				`{"type":"reasoning.text","text":"unsigned","format":"anthropic-claude-v1","index":0},{"type":"reasoning.summary","summary":"x","format":"anthropic-claude-v1"},{"type":"reasoning.encrypted","format":"anthropic-claude-v1"},7]}`,
			hiBlock + `,{"role":"assistant","content":[{"type":"text","text":"A"}]}`,
		},
		{"nothing but thinking", user + `,{"role":"assistant","content":"","reasoning_details":[{"type":"reasoning.text","text":"r","signature":"s","format":"anthropic-claude-v1","index":0}]},` + user, `{"role":"user","content":[{"type":"text","text":"hi"},{"type":"text","text":"hi"}]}`},
		{"hints for the cache", `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"},"x":1}]}`, `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`},
		{"members without meaning", `{"role":"user","name":"Ann","content":"hi","x":{}}`, hiBlock},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked("claude-sonnet-4-5", messages(c.in)), false)
			require.Equal(t, "["+c.want+"]", gjson.Get(body, "messages").Raw)
			require.Equal(t, body, request(t, asked("claude-sonnet-4-5", messages(c.in)), false)) // REQ-04
		})
	}
}

func TestParts(t *testing.T) {
	t.Parallel()
	const pdf = "JVBERi0xLjc="
	cases := []struct{ name, in, want string }{
		{"image as data", `{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw==","detail":"high"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}}`},
		{"image with parameters, slashes escaped", `{"type":"image_url","image_url":{"url":"DATA:image\/JPG;name=a;base64,\/9j\/"},"cache_control":{"type":"ephemeral"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/"},"cache_control":{"type":"ephemeral"}}`},
		{"image at an address", `{"type":"image_url","image_url":{"url":"https://h/a?b=1&c"}}`, `{"type":"image","source":{"type":"url","url":"https://h/a?b=1&c"}}`},
		{"image without an object", `{"type":"image_url","image_url":"http://h/a"}`, `{"type":"image","source":{"type":"url","url":"http://h/a"}}`},
		{"PDF", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,` + pdf + `"}}`, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"},"title":"a.pdf"}`},
		{"PDF without the scheme", `{"type":"file","file":{"file_data":"` + pdf + `"}}`, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"}}`},
		{"PDF at an address", `{"type":"file","file":{"file_data":"https://h/a.pdf"}}`, `{"type":"document","source":{"type":"url","url":"https://h/a.pdf"}}`},
		{"text file", `{"type":"file","file":{"filename":"a.md","file_data":"data:text/markdown;charset=utf-8;base64,` + base64.StdEncoding.EncodeToString([]byte("# \"é\"")) + `"}}`, `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"# \"é\""},"title":"a.md"}`},
		{"image under a wrong label (R-420)", `{"type":"image_url","image_url":{"url":"data:image/png;base64,/9j/4AAQSkZJRgABAQEASABIAAD"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/4AAQSkZJRgABAQEASABIAAD"}}`},
		{"image under the label of anything (R-420)", `{"type":"image_url","image_url":{"url":"data:application/octet-stream;base64,UklGRiQAAABXRUJQVlA4"}}`, `{"type":"image","source":{"type":"base64","media_type":"image/webp","data":"UklGRiQAAABXRUJQVlA4"}}`},
		{"image under the label of a document (R-420)", `{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,iVBORw0KGgoAAAANSUhEUg=="}}`, `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}}`},
		{"PDF under the label of an image (R-420)", `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pdf + `"}}`, `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"` + pdf + `"}}`},
		{"native image under a wrong label (R-420)", `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"R0lGODlhAQABAAAAACw="}}`, `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"R0lGODlhAQABAAAAACw="}}`},
		{"native image", `{"type":"image","source":{"type":"file","file_id":"f"},"x":1}`, `{"type":"image","source":{"type":"file","file_id":"f"}}`},
		{"native document", `{"type":"document","source":{"type":"url","url":"u"},"title":"t","citations":{"enabled":true}}`, `{"type":"document","source":{"type":"url","url":"u"},"title":"t","citations":{"enabled":true}}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked("claude-sonnet-4-5", messages(`{"role":"user","content":[`+c.in+`]}`)), false)
			require.Equal(t, c.want, gjson.Get(body, "messages.0.content.0").Raw)
		})
	}
}

// REQ-09: an image of many megabytes arrives as it is.
func TestLargeImage(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("QUJD", 1<<20)
	body := request(t, asked("claude-sonnet-4-5", messages(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`+data+`"}}]}`)), false)
	require.Equal(t, data, gjson.Get(body, "messages.0.content.0.source.data").Str)
}

func TestSystem(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want string }{
		{"none", messages(user), ``},
		{"joined in order, wherever they stand", messages(`{"role":"system","content":"A \u00e9"}`, user, `{"role":"developer","content":[{"type":"text","text":"B"},{"type":"text","text":""},{"type":"text","text":"C"}]}`), `"A \u00e9\n\nB\n\nC"`},
		{"with a hint for the cache", messages(`{"role":"system","content":[{"type":"text","text":"A","cache_control":{"type":"ephemeral","ttl":"1h"}}]}`, `{"role":"system","content":"B"}`), `[{"type":"text","text":"A","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"B"}]`},
		{"native text", `"system":"N",` + messages(`{"role":"system","content":"A"}`, user), `"N\n\nA"`},
		{"native blocks", `"system":[{"type":"text","text":"N","cache_control":{"type":"ephemeral"}}],` + messages(user), `[{"type":"text","text":"N","cache_control":{"type":"ephemeral"}}]`},
		{"nothing but space", messages(`{"role":"system","content":"\n"}`, user), ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, gjson.Get(request(t, asked("claude-sonnet-4-5", c.in), false), "system").Raw)
		})
	}
}

// tail gives the members that follow the messages.
func tail(tb testing.TB, body string) string {
	tb.Helper()
	_, rest, found := strings.Cut(request(tb, body, false), `"messages":[`+hiBlock+`]`)
	require.True(tb, found)
	return strings.TrimPrefix(strings.TrimSuffix(rest, "}"), ",")
}

func TestTools(t *testing.T) {
	t.Parallel()
	const (
		f     = `"tools":[{"type":"function","function":{"name":"f"}}]`
		fTool = `"tools":[{"name":"f","input_schema":{"type":"object","properties":{}}}]`
	)
	cases := []struct{ name, in, want string }{
		{"none", `"tools":[],"tool_choice":"auto","parallel_tool_calls":false`, ``},
		{
			"all members, order and numbers of the schema kept (REQ-02, REQ-04)", `"tools":[{"type":"function","function":{"strict":true,"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{"maximum":9223372036854775807},"a":{}}}},"cache_control":{"type":"ephemeral"}}]`,
			`"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"z":{"maximum":9223372036854775807},"a":{}}},"cache_control":{"type":"ephemeral"}}]`,
		},
		{"no parameters", f, fTool},
		{"a schema without a type", `"tools":[{"type":"function","function":{"name":"f","parameters":{"properties":{}}}}]`, `"tools":[{"name":"f","input_schema":{"properties":{},"type":"object"}}]`},
		{"a schema of another type", `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":["object","null"]}}}]`, `"tools":[{"name":"f","input_schema":{"type":"object"}}]`},
		{"native tools", `"tools":[{"name":"f","input_schema":{"type":"object"},"strict":true},{"type":"web_search_20250305","name":"web_search","max_uses":2}]`, `"tools":[{"name":"f","input_schema":{"type":"object"},"strict":true},{"type":"web_search_20250305","name":"web_search","max_uses":2}]`},
		{"auto", f + `,"tool_choice":"auto"`, fTool + `,"tool_choice":{"type":"auto"}`},
		{"none of them", f + `,"tool_choice":"none","parallel_tool_calls":false`, fTool + `,"tool_choice":{"type":"none"}`},
		{"required", f + `,"tool_choice":"required","parallel_tool_calls":true`, fTool + `,"tool_choice":{"type":"any"}`},
		{"named", f + `,"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false`, fTool + `,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}`},
		{"one at a time", f + `,"parallel_tool_calls":false`, fTool + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`},
		{"native choice", f + `,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}`, fTool + `,"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, tail(t, asked("claude-sonnet-4-5", c.in)))
		})
	}
}

// Tools that were called but are no longer offered must be declared all the same.
func TestToolsOfTheHistory(t *testing.T) {
	t.Parallel()
	body := request(t, asked("claude-sonnet-4-5", messages(user, twoCalls, `{"role":"tool","tool_call_id":"a","content":"1"}`, `{"role":"tool","tool_call_id":"b","content":"2"}`, oneCall)), false)
	require.Equal(t, `[{"name":"f","input_schema":{"type":"object","properties":{}}},{"name":"g","input_schema":{"type":"object","properties":{}}}]`, gjson.Get(body, "tools").Raw)
	require.Equal(t, `{"type":"none"}`, gjson.Get(body, "tool_choice").Raw)
}

func TestParameters(t *testing.T) {
	t.Parallel()
	const (
		old, middle, newer = "claude-sonnet-4-5-20250929", "claude-sonnet-4-6", "claude-opus-5-5"
		adaptive           = `"thinking":{"type":"adaptive","display":"summarized"}`
		format             = `"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{"z":{},"a":{}}}}}`
		subset             = `{"type":"json_schema","schema":{"type":"object","properties":{"z":{},"a":{}},"additionalProperties":false}}`
	)
	cases := []struct{ name, model, in, want string }{
		{"zeros stay (REQ-01)", old, `"temperature":0`, `"temperature":0`},
		{"numbers keep their text (REQ-02)", old, `"temperature":1.0`, `"temperature":1.0`},
		{"hotter than the scale", old, `"temperature":1.7`, `"temperature":1`},
		{"colder than the scale", old, `"temperature":-0.5`, `"temperature":0`},
		{"null is nothing", old, `"temperature":null,"top_p":null,"stop":null,"user":null,"tools":null,"tool_choice":null,"response_format":null,"reasoning_effort":null,"max_tokens":null,"thinking":null,"n":null`, ``},
		{"top_p and top_k", old, `"top_p":0.5,"top_k":40`, `"top_p":0.5,"top_k":40`},
		{"one of two", old, `"top_p":0,"temperature":0.2`, `"temperature":0.2`},
		{"both, where they may", "claude-3-7-sonnet-20250219", `"top_p":0.5,"temperature":0.2`, `"temperature":0.2,"top_p":0.5`},
		{"both, at another provider", "beta-1", `"top_p":0.5,"temperature":0.2`, `"temperature":0.2,"top_p":0.5`},
		{"a model that does not sample as told", newer, `"top_p":0.5,"temperature":0.2,"top_k":3`, ``},
		{"stop", old, `"stop":"END"`, `"stop_sequences":["END"]`},
		{"stops, blank ones left out", old, `"stop":["a\n"," ","","b"]`, `"stop_sequences":["a\n","b"]`},
		{"no stops", old, `"stop":[]`, ``},
		{"user", old, `"user":"u-1"`, `"metadata":{"user_id":"u-1"}`},
		{"user who is none", old, `"user":""`, ``},
		{"user with an address", old, `"user":"ann@example.org"`, ``},
		{"user with too long a name", old, `"user":"` + strings.Repeat("u", 257) + `"`, ``},
		{"metadata", old, `"user":"u-1","metadata":{"user_id":"u-2","run":"7"}`, `"metadata":{"user_id":"u-2"}`},
		{"metadata of OpenAI", old, `"metadata":{"run":"7"},"store":true`, ``},
		{"what has no counterpart", old, `"seed":1,"frequency_penalty":1,"presence_penalty":1,"logit_bias":{},"logprobs":false,"top_logprobs":null,"stream_options":{},"service_tier":"flex","verbosity":"low"`, ``},
		{"a schema", old, format, `"output_config":{"format":` + subset + `}`},
		{"a schema, for a model that knows none", "claude-3-7-sonnet-20250219", format, ``},
		{"any JSON", old, `"response_format":{"type":"json_object"}`, ``},
		{"text", old, `"response_format":{"type":"text"}`, ``},
		{"effort as a budget on top", old, `"reasoning_effort":"medium"`, `"thinking":{"type":"enabled","budget_tokens":8192}`},
		{"effort, at another provider", "beta-1", `"reasoning_effort":"minimal"`, `"thinking":{"type":"enabled","budget_tokens":1024}`},
		{"thinking excludes sampling", old, `"reasoning_effort":"low","temperature":0.5,"top_p":0.9,"top_k":5`, `"thinking":{"type":"enabled","budget_tokens":2048}`},
		{"thinking allows a large top_p", old, `"reasoning_effort":"low","top_p":0.95`, `"top_p":0.95,"thinking":{"type":"enabled","budget_tokens":2048}`},
		{"effort", middle, `"reasoning_effort":"minimal"`, adaptive + `,"output_config":{"effort":"low"}`},
		{"effort beyond high, before it was known", middle, `"reasoning_effort":"xhigh"`, adaptive + `,"output_config":{"effort":"max"}`},
		{"effort beyond high", newer, `"reasoning_effort":"xhigh"`, adaptive + `,"output_config":{"effort":"xhigh"}`},
		{"no effort", newer, `"reasoning_effort":"none","temperature":0.5`, `"thinking":{"type":"disabled"}`},
		{"no effort keeps sampling", old, `"reasoning_effort":"none","temperature":0.5`, `"temperature":0.5,"thinking":{"type":"disabled"}`},
		{"a model that does not think", "claude-3-5-haiku-20241022", `"reasoning_effort":"high","temperature":0.5`, `"temperature":0.5`},
		{"native thinking wins", old, `"reasoning_effort":"high","thinking":{"type":"enabled","budget_tokens":2000},"temperature":0.5`, `"thinking":{"type":"enabled","budget_tokens":2000}`},
		{"native output_config wins", newer, `"reasoning_effort":"high","output_config":{"effort":"low","task_budget":{"total":1}},` + format, adaptive + `,"output_config":{"effort":"low","task_budget":{"total":1},"format":` + subset + `}`},
		{"of two members the last counts", old, `"stop":"a","st\u006fp":"b"`, `"stop_sequences":["b"]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, tail(t, asked(c.model, c.in)))
		})
	}
}

func TestMaxTokens(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, in, want, budget string }{
		{"default", `"x":1`, `8192`, ``},
		{"old name", `"max_tokens":1000000`, `1000000`, ``},
		{"new name", `"max_completion_tokens":7,"max_tokens":9`, `7`, ``},
		{"a budget on top", `"reasoning_effort":"high"`, `24576`, `16384`},
		{"a budget within", `"reasoning_effort":"high","max_tokens":10000`, `10000`, `5000`},
		{"too few to think", `"reasoning_effort":"high","max_tokens":2000`, `2000`, ``},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked("claude-haiku-4-5", c.in), false)
			require.Equal(t, c.want, gjson.Get(body, "max_tokens").Raw)
			require.Equal(t, c.budget, gjson.Get(body, "thinking.budget_tokens").Raw)
		})
	}
}

// Thinking that was asked for as an effort gives way where the API would refuse the request.
func TestThinkingGivesWay(t *testing.T) {
	t.Parallel()
	const (
		tools  = `"tools":[{"type":"function","function":{"name":"f"}}],"reasoning_effort":"high"`
		result = `{"role":"tool","tool_call_id":"toolu_1","content":"12"}`
	)
	signed := strings.Replace(oneCall, `"content":null`, `"content":null,"reasoning_details":[{"type":"reasoning.text","text":"r","signature":"s","format":"anthropic-claude-v1","index":0}]`, 1)
	cases := []struct{ name, model, in, want string }{
		{"a call without its thinking", "claude-sonnet-4-5", tools + "," + messages(user, oneCall, result), ``},
		{"a call with its thinking", "claude-sonnet-4-5", tools + "," + messages(user, signed, result), `enabled`},
		{"an older call without its thinking", "claude-sonnet-4-5", tools + "," + messages(user, oneCall, result, `{"role":"assistant","content":"12"}`, user), `enabled`},
		{"adaptive thinking does not mind", "claude-sonnet-4-6", tools + "," + messages(user, oneCall, result), `adaptive`},
		{"a call that must come", "claude-sonnet-4-6", tools + `,"tool_choice":"required"`, ``},
		{"a call that may come", "claude-sonnet-4-6", tools + `,"tool_choice":"auto"`, `adaptive`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, gjson.Get(request(t, asked(c.model, c.in), false), "thinking.type").Str)
		})
	}
}

// an answer that the assistant has begun ends the conversation only where the API takes that.
func TestPrefill(t *testing.T) {
	t.Parallel()
	const begun = `{"role":"assistant","content":"I began "}`
	const went = `{"role":"assistant","content":[{"type":"text","text":"I began "}]},{"role":"user","content":[{"type":"text","text":"Continue."}]}`
	const stays = `{"role":"assistant","content":[{"type":"text","text":"I began"}]}`
	const format = `,"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"object","properties":{"a":{}}}}}`
	cases := []struct{ name, model, members, want string }{
		{"before it went", "claude-sonnet-4-5", "", stays},
		{"another provider", "beta-1", "", stays},
		{"since it went", "claude-opus-4-6", "", went},
		{"a newer model", "claude-sonnet-5", "", went},
		{"a model without a number", "claude-next", "", went},
		{"with thinking", "claude-sonnet-4-5", `,"reasoning_effort":"high"`, went},
		{"with thinking of the client's own", "claude-sonnet-4-5", `,"thinking":{"type":"enabled","budget_tokens":1024}`, went},
		{"with a format", "claude-sonnet-4-5", format, went},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			body := request(t, asked(c.model, messages(user, begun)+c.members), false)
			require.Equal(t, "["+hiBlock+","+c.want+"]", gjson.Get(body, "messages").Raw)
		})
	}
}

// What can't be translated is the client's affair and is named.
func TestRefusals(t *testing.T) {
	t.Parallel()
	call := func(function string) string {
		return messages(user, `{"role":"assistant","tool_calls":[`+function+`]}`)
	}
	content := func(part string) string {
		return messages(user, `{"role":"user","content":[{"type":"text","text":"a"},`+part+`]}`)
	}
	const f = `"tools":[{"type":"function","function":{"name":"f"}}],`
	cases := []struct{ name, in, param, code string }{
		{"no messages", `"messages":{}`, "messages", openai.CodeInvalidType},
		{"message that is none", messages(`7`), "messages[0].role", openai.CodeInvalidValue},
		{"unknown role", messages(user, `{"role":"critic","content":"x"}`), "messages[1].role", openai.CodeInvalidValue},
		{"role out of date", messages(user, `{"role":"function","name":"f","content":"x"}`), "messages[1].role", openai.CodeInvalidValue},
		{"content of a wrong type", messages(`{"role":"user","content":7}`), "messages[0].content", openai.CodeInvalidType},
		{"audio", content(`{"type":"input_audio","input_audio":{"data":"","format":"wav"}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"part without a type", content(`{}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"image of another kind", content(`{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AA=="}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"image not in base64", content(`{"type":"image_url","image_url":{"url":"data:image/png,x"}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"image on a disk", content(`{"type":"image_url","image_url":{"url":"file:///a.png"}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"image without an address", content(`{"type":"image_url"}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"file by its id", content(`{"type":"file","file":{"file_id":"file-1"}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"file of another kind", content(`{"type":"file","file":{"file_data":"data:application/zip;base64,AA=="}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"text file that is none", content(`{"type":"file","file":{"file_data":"data:text/plain;base64,/w=="}}`), "messages[1].content[1]", openai.CodeInvalidValue},
		{"image of the system", messages(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://h/a"}}]}`, user), "messages[0].content[0]", openai.CodeInvalidValue},
		{"image of the assistant", messages(user, `{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://h/a"}}]}`), "messages[1].content[0]", openai.CodeInvalidValue},
		{"audio of a tool", messages(user, oneCall, `{"role":"tool","tool_call_id":"toolu_1","content":{"type":"input_audio"}}`), "messages[2].content", openai.CodeInvalidValue},
		{"system of a wrong type", `"system":7`, "system", openai.CodeInvalidType},
		{"call without a function", call(`{"id":"a","type":"custom","custom":{"name":"f","input":""}}`), "messages[1].tool_calls[0].function.name", openai.CodeMissing},
		{"call of old", messages(user, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`), "messages[1].function_call", openai.CodeInvalidValue},
		{"result without an id", messages(user, oneCall, `{"role":"tool","content":"x"}`), "messages[2].tool_call_id", openai.CodeMissing},
		{"functions of old", `"functions":[{"name":"f"}]`, "functions", openai.CodeInvalidValue},
		{"tools of a wrong type", `"tools":{}`, "tools", openai.CodeInvalidType},
		{"custom tool", `"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"g"}}]`, "tools[1].type", openai.CodeInvalidValue},
		{"tool without a name", `"tools":[{"type":"function","function":{}}]`, "tools[0].function.name", openai.CodeMissing},
		{"choice of a custom tool", f + `"tool_choice":{"type":"custom","custom":{"name":"g"}}`, "tool_choice", openai.CodeInvalidValue},
		{"choice of some tools", f + `"tool_choice":{"type":"allowed_tools"}`, "tool_choice", openai.CodeInvalidValue},
		{"choice without a name", f + `"tool_choice":{"type":"function"}`, "tool_choice", openai.CodeMissing},
		{"several answers", `"n":2`, "n", openai.CodeInvalidValue},
		{"probabilities of tokens", `"logprobs":true`, "logprobs", openai.CodeInvalidValue},
		{"probabilities of many tokens", `"top_logprobs":5`, "top_logprobs", openai.CodeInvalidValue},
		{"limit of a wrong type", `"max_tokens":"7"`, "max_tokens", openai.CodeInvalidType},
		{"new limit of a wrong type", `"max_completion_tokens":true`, "max_completion_tokens", openai.CodeInvalidType},
		{"temperature of a wrong type", `"temperature":"hot"`, "temperature", openai.CodeInvalidType},
		{"top_p of a wrong type", `"top_p":[]`, "top_p", openai.CodeInvalidType},
		{"stop of a wrong type", `"stop":7`, "stop", openai.CodeInvalidType},
		{"stops of a wrong type", `"stop":["a",7]`, "stop", openai.CodeInvalidType},
		{"unknown effort", `"reasoning_effort":"heroic"`, "reasoning_effort", openai.CodeInvalidValue},
		{"effort of a wrong type", `"reasoning_effort":3`, "reasoning_effort", openai.CodeInvalidValue},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := anthropic.Translator{}.Request([]byte(asked("claude-sonnet-4-5", c.in)), false)
			var refused *openai.RequestError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.param, refused.Param)
			require.Equal(t, c.code, refused.Code)
			require.Contains(t, refused.Message, "'"+c.param+"' ")
		})
	}
	for body, code := range map[string]string{`{`: openai.CodeInvalidJSON, "{\"model\":\"\xff\"}": openai.CodeInvalidJSON, `[]`: openai.CodeMissing, `{"messages":[]}`: openai.CodeMissing, `{"model":7}`: openai.CodeMissing} {
		_, err := anthropic.Translator{}.Request([]byte(body), false)
		var refused *openai.RequestError
		require.ErrorAs(t, err, &refused)
		require.Equal(t, code, refused.Code, body)
	}
}

// What the model thought comes back to it unchanged, whether the client got it whole or in a stream.
func TestThinkingRoundTrip(t *testing.T) {
	t.Parallel()
	whole := completion([]byte(nativeThinking))
	streamed := collectBody(t, translate(t, strings.NewReader(streamedThinking)))
	for _, answer := range [][]byte{whole, streamed} {
		message := gjson.GetBytes(answer, "choices.0.message").Raw
		body := request(t, asked("claude-sonnet-4-5", messages(user, message, `{"role":"tool","tool_call_id":"toolu_1","content":"12"}`)), false)
		require.Equal(t, gjson.Get(nativeThinking, "content").Raw, gjson.Get(body, "messages.1.content").Raw)
	}
}
