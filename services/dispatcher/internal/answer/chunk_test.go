package answer

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai"
)

func parse(text string) *Chunk {
	var c Chunk
	c.Parse([]byte(text))
	return &c
}

func TestChunkParse(t *testing.T) {
	t.Parallel()
	c := parse(`{"id":"c1","object":"chat.completion.chunk","created":17,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"A"},"logprobs":null,"finish_reason":null},` +
		`{"index":1,"delta":{"reasoning_content":"r","reasoning":"s","refusal":null,"tool_calls":[{}],"function_call":{"name":"f"},"annotations":[1]},"finish_reason":"stop"}],"usage":{"total_tokens":3}}`)
	require.True(t, c.Valid)
	require.False(t, c.Plain)
	require.True(t, c.HasChoices)
	require.Len(t, c.Choices, 2)
	a, get := c.Choices[0], func(raw []byte) string { return string(raw) }
	require.Equal(t, `"assistant"`, get(a.Role))
	require.Equal(t, `"A"`, get(a.Content))
	require.Equal(t, `null`, get(a.Finish))
	require.Equal(t, `{"role":"assistant","content":"A"}`, get(a.Delta))
	require.True(t, a.HasOutput())
	require.False(t, a.Finished())
	require.False(t, a.Extra)
	b := c.Choices[1]
	require.Equal(t, 1, b.Index)
	require.Equal(t, `"r"`, get(b.ReasoningContent))
	require.Equal(t, `"s"`, get(b.Reasoning))
	require.Equal(t, `[{}]`, get(b.ToolCalls))
	require.Equal(t, `{"name":"f"}`, get(b.FunctionCall))
	require.True(t, b.Finished())
	require.True(t, b.Extra)
	require.Equal(t, `"c1"`, get(c.ID))
	require.Equal(t, `17`, get(c.Created))
	require.Equal(t, `"m"`, get(c.Model))
	require.Equal(t, openai.Usage{Total: 3}, openai.ParseUsage(c.Usage))
}

func TestChunkErrors(t *testing.T) {
	t.Parallel()
	failed := []string{
		`{"error":{"message":"x"}}`,
		`{"error":"x"}`,
		`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`,
		`{"error":{"message":"x"},"status_code":500}`,
		`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"server_error","message":"x"}}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"error"}]}`,
		`{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}`,
		`{"choices":[{"index":0,"error":{"message":"x"}}]}`,
		`{"choices":[{"index":0,"delta":{}}],"x_groq":{"id":"r","error":"over capacity"}}`,
		`[{"error":{"code":429,"message":"x"}}]`,
		`{"message":"x","type":"too_many_requests_error","code":"q"}`,
		`{"object":"error","message":"x"}`,
		`{"detail":[{"msg":"x"}]}`,
		`{"id":"x","choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`,
	}
	for _, text := range failed {
		require.NotNil(t, parse(text).Error, text)
	}
	for _, text := range []string{
		`{"error":null,"choices":[]}`, `{"error":"","choices":[]}`, `{"error":{},"choices":[]}`, `{"error":false,"choices":[]}`,
	} {
		c := parse(text)
		require.Nil(t, c.Error, text)
		require.True(t, c.NullError, text)
	}
	for _, text := range []string{`{"choices":[],"message":"x"}`, `{"choices":[{"delta":{"content":"error"}}]}`, `{}`, `[1]`, `[]`, `{"base_resp":{"status_code":0}}`, `{"x_groq":{"error":null}}`} {
		require.Nil(t, parse(text).Error, text)
	}
}

func TestChunkDecisive(t *testing.T) {
	t.Parallel()
	cases := []struct {
		text      string
		decisive  bool
		usageOnly bool
	}{
		{`{"choices":[{"delta":{"role":"assistant"}}]}`, false, false},
		{`{"choices":[{"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}]}`, false, false},
		{`{"choices":[{"delta":{},"finish_reason":""}]}`, false, false},
		{`{"choices":[{"delta":{"content":"x"}}]}`, true, false},
		{`{"choices":[{"delta":{"content":[{"type":"text"}]}}]}`, true, false},
		{`{"choices":[{"delta":{"reasoning_content":"x"}}]}`, true, false},
		{`{"choices":[{"delta":{"reasoning":"x"}}]}`, true, false},
		{`{"choices":[{"delta":{"tool_calls":[{"index":0}]}}]}`, true, false},
		{`{"choices":[{"delta":{"tool_calls":[ ]}}]}`, false, false},
		{`{"choices":[{"delta":{"function_call":{"name":"f"}}}]}`, true, false},
		{`{"choices":[{"delta":null},{"delta":{"refusal":"no"}}]}`, true, false},
		{`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, true, false},
		{`{"choices":[],"usage":{"total_tokens":1}}`, false, true},
		{`{"usage":{"total_tokens":1}}`, false, true},
		{`{"choices":null,"usage":null}`, false, false},
		{`{"choices":[],"prompt_filter_results":[]}`, false, false}, // STR-06
		{`{"choices":"x"}`, false, false},
		{`{"choices":[1,"x",null]}`, false, false},
	}
	for _, c := range cases {
		got := parse(c.text)
		require.True(t, got.Valid, c.text)
		require.Equal(t, c.decisive, got.Decisive(), c.text)
		require.Equal(t, c.usageOnly, got.UsageOnly(), c.text)
	}
}

func TestChunkUsage(t *testing.T) { // STR-15
	t.Parallel()
	c := parse(`{"x_groq":{"usage":{"prompt_tokens":1,"completion_tokens":2}},"choices":[]}`)
	require.True(t, c.UsageInside)
	require.Equal(t, openai.Usage{Prompt: 1, Completion: 2, Total: 3}, openai.ParseUsage(c.Usage))
	c = parse(`{"x_groq":{"usage":{"prompt_tokens":1}},"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":5,"total_tokens":10}}`)
	require.False(t, c.UsageInside)
	require.Equal(t, openai.Usage{Prompt: 4, Completion: 5, Total: 10}, openai.ParseUsage(c.Usage))
}

func TestChunkOfWholeAnswer(t *testing.T) { // R-122, STR-12, C-42
	t.Parallel()
	const message = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"total_tokens":3}}`
	require.True(t, parse(message).Plain)
	require.True(t, parse("\n\n "+message).Answers())
	require.False(t, parse(message+"x").Valid)
	require.False(t, parse(``).Valid)
	require.False(t, parse(`{"choices":[]}`).Answers())
	require.True(t, parse(`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"a"}]}}]}`).Decisive()) // STR-12f
	require.True(t, parse(`{"choices":[{"message":{"content":null,"audio":{"id":"a"}}}]}`).Choices[0].Extra)
}

func oracle(data []byte) (deltas []map[string]json.RawMessage) {
	var top map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(data, &top) != nil || json.Unmarshal(top["choices"], &choices) != nil {
		return nil
	}
	for _, choice := range choices {
		var delta map[string]json.RawMessage
		if (choice["delta"] == nil) != (choice["message"] == nil) {
			_ = json.Unmarshal(append(bytes.Clone(choice["delta"]), choice["message"]...), &delta)
		}
		deltas = append(deltas, delta)
	}
	return deltas
}

func FuzzChunk(f *testing.F) {
	f.Add(contentChunk)
	f.Add([]byte(`[{"error":{}}]`))
	f.Add([]byte(`{"choices":[{"index":"1","delta":{"content":"x","tool_calls":[{"id":""}]},"finish_reason":""}],"error":null,"x_groq":{"usage":{}}}`))
	files, err := filepath.Glob("../../../../shared/testkit/fixtures/*/stream-*.sse")
	require.NoError(f, err)
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(f, err)
		r := openai.NewReader(bytes.NewReader(text), 0)
		for e, err := r.Next(); err == nil; e, err = r.Next() {
			f.Add(bytes.Clone(e.Data))
		}
	}
	var reused Chunk
	f.Fuzz(func(t *testing.T, data []byte) {
		reused.Parse(data)
		c := &reused
		isObject := len(bytes.TrimSpace(data)) > 0 && bytes.TrimSpace(data)[0] == '{'
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) < 500 {
			require.Equal(t, json.Valid(data) && utf8.Valid(data) && isObject, c.Valid)
		}
		_, _, _ = c.Decisive(), c.Answers(), c.UsageOnly()
		_ = openai.ParseUsage(c.Usage)
		if !c.Valid {
			return
		}
		for i, want := range oracle(data) {
			ch := &c.Choices[i]
			for name, got := range map[string][]byte{
				"content": ch.Content, "reasoning_content": ch.ReasoningContent, "tool_calls": ch.ToolCalls, "role": ch.Role,
			} {
				if raw, ok := want[name]; ok {
					require.Equal(t, string(raw), string(got))
				}
			}
		}
	})
}

var contentChunk = []byte(`{"id":"chatcmpl-01","object":"chat.completion.chunk","created":1790000000,"model":"alpha-1","service_tier":"default","system_fingerprint":"fp_x","choices":[{"index":0,"delta":{"content":" green"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ3kPq"}`)

func BenchmarkChunk(b *testing.B) {
	for name, data := range map[string][]byte{
		"content": contentChunk,
		"short":   []byte(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}`),
		"tool":    []byte(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"ci"}}]},"finish_reason":null}]}`),
	} {
		b.Run(name, func(b *testing.B) {
			var c Chunk
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if c.Parse(data); !c.Decisive() {
					b.Fatal("not decisive")
				}
			}
		})
	}
}
