package compat_test

import "testing"

// chat puts messages between two of the user's.
func chat(messages string) string { return request(hi+","+messages+","+hi, "") }

const (
	madeLong = `{"role":"assistant","content":null,"tool_calls":[{"id":"function-call-1234567890123456789012345678","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	gotLong  = `{"role":"tool","tool_call_id":"function-call-1234567890123456789012345678","content":"42"}`
)

// history has repairs of messages, by the fact or the bug they come from.
var history = []golden{
	// 3.1: members of other vendors are refused in messages too.
	{"reasoning of others", "openai", chat(`{"role":"assistant","reasoning_content":"r","content":"a","refusal":null,"annotations":[]}`), chat(`{"role":"assistant","content":"a","refusal":null,"annotations":[]}`)},
	{"marks of caches", "openai", chat(`{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`), chat(`{"role":"user","content":[{"type":"text","text":"a"}]}`)},
	{"signatures", "openai", request(hi+`,{"role":"assistant","tool_calls":[{"id":"a","extra_content":{},"type":"function","function":{"name":"f","arguments":"{}"}}]}`, ""), request(hi+`,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "")},
	{"no tool calls", "openai", chat(`{"role":"assistant","content":"a","tool_calls":[]}`), chat(`{"role":"assistant","content":"a"}`)},
	{"null without tool calls", "openai", chat(`{"role":"assistant","content":null}`), chat(`{"role":"assistant","content":""}`)},
	{"null with tool calls", "openai", chat(made + "," + got), ``}, // REQ-06
	{
		"ids that are too long", "openai", chat(madeLong + "," + gotLong),
		chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"yyG5O44wlRCUApLjTgYW1aNL","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"yyG5O44wlRCUApLjTgYW1aNL","content":"42"}`),
	},
	{"its own role", "openai", request(`{"role":"developer","content":"d"},`+hi, ""), ``},

	// 3.3
	{"the developer", "gemini", request(`{"role":"developer","content":"d"},`+hi, ""), request(`{"role":"system","content":"d"},`+hi, "")},
	{"reasoning of others", "gemini", chat(`{"role":"assistant","content":"a","reasoning_content":"r","reasoning":"r","refusal":null,"annotations":[],"audio":null}`), chat(`{"role":"assistant","content":"a"}`)},
	{"signatures stay", "gemini", request(hi+`,{"role":"assistant","tool_calls":[{"id":"a","index":0,"type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}]}`, ""), request(hi+`,{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}]}`, "")},
	{"results name the tool (7.3)", "gemini", chat(made + "," + got), chat(made + `,{"role":"tool","tool_call_id":"call_1","content":"42","name":"f"}`)},
	{"an empty name", "gemini", chat(made + `,{"role":"tool","name":"","tool_call_id":"call_1","content":"42"}`), chat(made + `,{"role":"tool","name":"f","tool_call_id":"call_1","content":"42"}`)},
	{"a result of an unknown call", "gemini", chat(`{"role":"tool","tool_call_id":"x","content":"42"}`), ``},
	{"an empty answer", "gemini", chat(`{"role":"assistant","content":""}`), request(hi+","+hi, "")},
	{"an answer of reasoning only", "gemini", chat(`{"role":"assistant","content":null,"reasoning_content":"r"}`), request(hi+","+hi, "")},
	{"empty system at the start", "gemini", request(`{"role":"system","content":""}, {"role":"system","content":[]} ,`+hi, ""), request(hi, "")},
	{"empty texts", "gemini", chat(`{"role":"user","content":[{"type":"text","text":""},{"type":"image_url","image_url":{"url":"data:x"}}]}`), chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}`)},
	{"texts of the assistant", "gemini", chat(`{"role":"assistant","content":[{"type":"text","text":"a\u00e9"},{"type":"text","text":"b"}]}`), chat(`{"role":"assistant","content":"a\u00e9\nb"}`)},
	{"an address alone (4.3)", "gemini", chat(`{"role":"user","content":[{"type":"image_url","image_url":"data:x"}]}`), chat(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:x"}}]}`)},
	{"a refusal", "gemini", chat(`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`), chat(`{"role":"assistant","content":"no"}`)},

	// 3.5
	{"reasoning has its own name", "groq", chat(`{"role":"assistant","content":"a","reasoning_content":"r"}`), chat(`{"role":"assistant","content":"a","reasoning":"r"}`)},
	{"reasoning twice", "groq", chat(`{"role":"assistant","reasoning_content":"r","content":"a","reasoning":"r"}`), chat(`{"role":"assistant","content":"a","reasoning":"r"}`)},
	{"no reasoning", "groq", chat(`{"role":"assistant","reasoning_content":null,"content":"a"}`), chat(`{"role":"assistant","content":"a"}`)},
	{"names", "groq", request(`{"role":"user","name":"n","content":"a"},`+made+`,{"role":"tool","name":"f","tool_call_id":"call_1","content":"1"}`, ""), request(`{"role":"user","content":"a"},`+made+`,{"role":"tool","tool_call_id":"call_1","content":"1"}`, "")},
	{"text from the web", "groq", request(`{"role":"system","name":"web_context","content":"w"},{"role":"user","content":"a"}`, ""), request(`{"role":"system","name":"web_context","content":"w"},{"role":"user","content":"a"}`, "")},
	{"no name", "groq", request(`{"role":"system","name":null,"content":"w"},{"role":"user","content":"a"}`, ""), request(`{"role":"system","content":"w"},{"role":"user","content":"a"}`, "")},
	{"members of a client", "groq", request(`{"role":"user","content":"a","timestamp":1,"metadata":{}}`, ""), request(`{"role":"user","content":"a"}`, "")},

	// 3.6
	{"reasoning has its own name", "cerebras", chat(`{"role":"assistant","content":"a","reasoning_content":"r","reasoning_details":[]}`), chat(`{"role":"assistant","content":"a","reasoning":"r"}`)},
	{"names stay", "cerebras", request(`{"role":"user","name":"n","content":"a"}`, ""), ``},

	// 3.9 and mistral/error-400-toolid.json
	{
		"ids of other vendors", "mistral", request(hi+","+made+","+got, ""),
		request(hi+`,{"role":"assistant","content":null,"tool_calls":[{"id":"sPnjkEYJU","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"sPnjkEYJU","content":"42"}`, ""),
	},
	{"its own ids", "mistral", request(hi+`,{"role":"assistant","content":null,"tool_calls":[{"id":"fxA1b2C3d","type":"function","function":{"name":"f","arguments":"{}"},"index":0}]},{"role":"tool","tool_call_id":"fxA1b2C3d","name":"f","content":"42"}`, ""), ``},
	{"reasoning of others", "mistral", chat(`{"role":"assistant","reasoning_content":"\n","content":"a","refusal":null}`), chat(`{"role":"assistant","content":"a"}`)},
	{"its own reasoning", "mistral", chat(`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]}`), ``},
	{"names", "mistral", request(`{"role":"user","name":"n","content":"a"}`, ""), request(`{"role":"user","content":"a"}`, "")},
	{"an empty answer", "mistral", chat(`{"role":"assistant","content":""}`), request(hi+","+hi, "")},
	{
		"the user after a tool", "mistral", request(hi+`,{"role":"tool","tool_call_id":"fxA1b2C3d","content":"42"},{"role":"assistant","content":""},`+hi, ""),
		request(hi+`,{"role":"tool","tool_call_id":"fxA1b2C3d","content":"42"},{"role":"assistant","content":"Done."},`+hi, ""),
	},
	{"the assistant goes on", "mistral", request(hi+`,{"role":"assistant","content":"So"}`, ""), request(hi+`,{"role":"assistant","content":"So","prefix":true}`, "")},
	{"an address alone", "mistral", chat(`{"role":"user","content":[{"type":"image_url","image_url":"data:x"}]}`), ``},

	// 3.8 and deepseek/error-400-reasoning.json
	{"reasoning of another model", "deepseek", chat(made + "," + got), chat(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":""},` + got)},
	{"reasoning under another name", "deepseek", chat(`{"role":"assistant","reasoning":"r","content":"","tool_calls":[{"id":"a"}]}`), chat(`{"role":"assistant","reasoning_content":"r","content":"","tool_calls":[{"id":"a"}]}`)},
	{"reasoning of null", "deepseek", chat(`{"role":"assistant","reasoning_content":null,"content":"","tool_calls":[{"id":"a"}]}`), chat(`{"role":"assistant","reasoning_content":"","content":"","tool_calls":[{"id":"a"}]}`)},
	{"reasoning is there", "deepseek", chat(`{"role":"assistant","reasoning_content":"r","content":"","tool_calls":[{"id":"a"}]}`), ``},
	{"every answer beside tool calls", "deepseek", request(hi+`,{"role":"assistant","content":"a"},`+made+","+got, ""), request(hi+`,{"role":"assistant","content":"a","reasoning_content":""},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}],"reasoning_content":""},`+got, "")},
	{"no tools, no reasoning", "deepseek", chat(`{"role":"assistant","content":"a"}`), ``},
	{"thinking is off", "deepseek", request(hi+","+made+","+got, `,"thinking":{"type":"disabled"}`), ``},
	{"contents are strings", "deepseek", request(`{"role":"system","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},{"role":"user","content":[{"type":"text","text":"b"},{"type":"text","text":""},{"type":"text","text":"c"}]}`, ""), request(`{"role":"system","content":"a"},{"role":"user","content":"b\nc"}`, "")},
	{"images stay", "deepseek", request(`{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"data:x"}}]}`, ""), ``},

	// 3.11
	{"null without tool calls", "ollama", chat(`{"role":"assistant","content":null}`), chat(`{"role":"assistant","content":""}`)},
	{"no content", "ollama", chat(`{"role":"assistant"}`), chat(`{"role":"assistant","content":""}`)},
	{"the developer", "ollama", request(`{"content":"d","role":"developer"},`+hi, ""), request(`{"content":"d","role":"system"},`+hi, "")},
	{"reasoning is ignored", "vllm", chat(`{"role":"assistant","content":"a","reasoning_content":"r","x":1}`), ``},
	{"the developer", "vllm", request(`{"role":"developer","content":"d"},`+hi, ""), request(`{"role":"system","content":"d"},`+hi, "")},
}

func TestMessages(t *testing.T) {
	t.Parallel()
	check(t, history)
}
