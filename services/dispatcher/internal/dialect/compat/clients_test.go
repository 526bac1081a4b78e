package compat_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/shared/openai/rawjson"
)

// all has every vendor that a provider of OpenAI's protocol may be, known or not.
var all = []string{
	"gemini", "groq", "cerebras", "mistral", "deepseek", "minimax", "openrouter", "ollama", "vllm", "llamacpp", "lmstudio", "openai", "", "other",
}

// refusals are what a strict vendor answers with 400 or 422, as paths of gjson that must find nothing.
var refusals = map[string][]string{
	"gemini": {
		"store", "metadata", "seed", "user", "presence_penalty", "frequency_penalty", "parallel_tool_calls", "prompt_cache_key", "logit_bias",
		"service_tier", "verbosity", "safety_identifier", "thinking", "options", "stream_options.include_obfuscation", `messages.#(role="developer")`,
		"messages.#.reasoning_content", "messages.#.refusal", "messages.#.annotations", "messages.#.timestamp", "messages.#.prefix",
		"messages.#.content.#.cache_control", "tools.#.cache_control",
	},
	"groq": {
		"store", "metadata", "logit_bias", "logprobs", "n", "prompt_cache_key", "verbosity", "thinking", "keep_alive", "num_ctx", "extra_headers",
		"stream_options.include_obfuscation", "messages.#.name", "messages.#.reasoning_content", "messages.#.reasoning_details",
		"messages.#.refusal", "messages.#.timestamp", "messages.#.content.#.cache_control", "messages.#.tool_calls.#.extra_content",
	},
	"cerebras": {
		"store", "metadata", "thinking", "options", "verbosity", "safety_identifier", "messages.#.reasoning_content", "messages.#.reasoning_details",
		"messages.#.refusal", "messages.#.sources", "messages.#.tool_calls.#.extra_content", "messages.#.content.#.cache_control",
	},
	"mistral": {
		"store", "user", "logit_bias", "logprobs", "seed", "max_completion_tokens", "stream_options", "verbosity", "keep_alive",
		`messages.#(role="developer")`, "messages.#.reasoning_content", "messages.#.refusal", `messages.#(role="user").name`,
		"messages.#.content.#.cache_control", "tools.#.cache_control",
	},
	"openai": {
		"max_tokens", "thinking", "num_ctx", "options", "keep_alive", "messages.#.reasoning_content", "messages.#.content.#.cache_control",
		"messages.#.tool_calls.#.extra_content", "tools.#.cache_control",
	},
	"deepseek": {"max_completion_tokens", `messages.#(role="developer")`},
	"minimax":  {"response_format", "tool_choice", "parallel_tool_calls", "seed", "reasoning_effort", "n", `messages.#(role="developer")`},
	"ollama":   {"max_completion_tokens", `messages.#(role="developer")`},
	"lmstudio": {"tool_choice.type", "max_completion_tokens"},
}

func bodies(tb testing.TB) map[string][]byte {
	tb.Helper()
	files, err := filepath.Glob("testdata/clients/*.json")
	require.NoError(tb, err)
	require.NotEmpty(tb, files)
	all := map[string][]byte{}
	for _, f := range files {
		body, err := os.ReadFile(f)
		require.NoError(tb, err)
		all[strings.TrimSuffix(filepath.Base(f), ".json")] = body
	}
	return all
}

// What clients send is sound for every vendor, and what the user said is still there.
func TestClients(t *testing.T) {
	t.Parallel()
	for client, body := range bodies(t) {
		for _, vendor := range all {
			t.Run(client+"/"+vendor, func(t *testing.T) {
				t.Parallel()
				before := string(body)
				out, err := compat.Request(vendor, body)
				require.NoError(t, err)
				require.Equal(t, before, string(body), "the body belongs to the caller")
				require.True(t, rawjson.Valid(out), "%s", out)
				for _, path := range refusals[vendor] {
					found := gjson.GetBytes(out, path)
					require.True(t, !found.Exists() || found.IsArray() && len(flat(found)) == 0, "%s is refused: %s in %s", path, found.Raw, out)
				}
				require.Equal(t, said(body), said(out), "%s", out)
				if gjson.GetBytes(body, "tools.0").Exists() {
					require.Equal(t, gjson.GetBytes(body, "tools.#.function.parameters").Raw, gjson.GetBytes(out, "tools.#.function.parameters").Raw)
				}
				checkIDs(t, vendor, out)
				checkContents(t, vendor, out)
				again, err := compat.Request(vendor, out)
				require.NoError(t, err)
				require.Equal(t, string(out), string(again))
			})
		}
	}
}

// flat gives the values of nested arrays.
func flat(v gjson.Result) []gjson.Result {
	if !v.IsArray() {
		return []gjson.Result{v}
	}
	var out []gjson.Result
	for _, e := range v.Array() {
		out = append(out, flat(e)...)
	}
	return out
}

// said has the texts of all messages of the user and of tools, in their order.
func said(body []byte) string {
	var all []string
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		if role := m.Get("role").Str; role != "user" && role != "tool" {
			continue
		}
		if c := m.Get("content"); c.IsArray() {
			for _, p := range c.Array() {
				all = append(all, p.Get("text").Str, p.Get("image_url.url").Str)
			}
		} else {
			all = append(all, c.Str)
		}
	}
	all = slices.DeleteFunc(all, func(s string) bool { return s == "" })
	return strings.Join(all, "\n")
}

// checkIDs wants every result to belong to a call.
func checkIDs(t *testing.T, vendor string, body []byte) {
	t.Helper()
	calls := map[string]bool{}
	for _, id := range flat(gjson.GetBytes(body, "messages.#.tool_calls.#.id")) {
		calls[id.Str] = true
		if vendor == "mistral" {
			require.Regexp(t, `^[a-zA-Z0-9]{9}$`, id.Str)
		}
		if vendor == "openai" {
			require.LessOrEqual(t, len(id.Str), 40)
		}
	}
	for _, id := range gjson.GetBytes(body, "messages.#.tool_call_id").Array() {
		require.True(t, calls[id.Str], "no call %q", id.Str)
	}
}

// checkContents wants a content wherever there is no tool call, and not an empty one where that is refused.
func checkContents(t *testing.T, vendor string, body []byte) {
	t.Helper()
	for _, m := range gjson.GetBytes(body, "messages").Array() {
		if m.Get("tool_calls").Exists() || vendor == "" || vendor == "other" || vendor == "openrouter" {
			continue
		}
		require.NotEqual(t, gjson.Null, m.Get("content").Type, m.Raw)
		if vendor == "gemini" || vendor == "mistral" {
			require.NotEmpty(t, m.Get("content").String(), m.Raw)
		}
	}
}

// The order of roles that Mistral checks, and the reasoning that DeepSeek wants back.
func TestClientsAtMistralAndDeepSeek(t *testing.T) {
	t.Parallel()
	for client, body := range bodies(t) {
		out, err := compat.Request("mistral", body)
		require.NoError(t, err)
		last := gjson.Result{}
		for _, m := range gjson.GetBytes(out, "messages").Array() {
			require.False(t, last.Get("role").Str == "tool" && m.Get("role").Str == "user", client)
			last = m
		}
		require.True(t, last.Get("role").Str != "assistant" || last.Get("prefix").Bool(), client)

		out, err = compat.Request("deepseek", body)
		require.NoError(t, err)
		for _, m := range gjson.GetBytes(out, "messages").Array() {
			if m.Get("tool_calls").Exists() {
				require.Equal(t, gjson.String, m.Get("reasoning_content").Type, client)
			}
			require.False(t, m.Get("content").IsArray() && !m.Get(`content.#(type!="text")`).Exists(), client)
		}
	}
}

// Decoded, a body differs only where a rule says so: a request that suits everybody is the same for all.
func TestPlainRequestsSuitEverybody(t *testing.T) {
	t.Parallel()
	in := []byte(" {\n \"model\" : \"m\",\t\"messages\":[ {\"role\":\"user\" , \"content\":\"h\\u00e9 \\ud83d\\ude00\" } ],\"temperature\":1.0 , \"stream\":true,\"top_p\":1e-1,\"stop\":\"x\"}\n")
	for _, vendor := range all {
		out, err := compat.Request(vendor, in)
		require.NoError(t, err)
		require.Same(t, &in[0], &out[0], vendor)
	}
	require.True(t, json.Valid(in))
}
