package ollama_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/testkit/fixtures"
)

// Whatever comes: chunks that are JSON, the same however the stream is cut, and an end only where the stream has one.
func FuzzEvents(f *testing.F) {
	for _, s := range fixtures.Of("ollama") {
		f.Add(s.Body)
	}
	f.Add([]byte(`{"model":7,"message":{"content":{},"thinking":[],"tool_calls":[{"id":3,"function":{"name":[],"arguments":[1]}}]},"done":true,"eval_count":-1}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out := events(t, bytes.NewReader(body))
		require.Equal(t, out, events(t, iotest.HalfReader(iotest.DataErrReader(bytes.NewReader(body)))))
		r := openai.NewReader(strings.NewReader(out), 0)
		for {
			e, err := r.Next()
			if err != nil {
				require.ErrorIs(t, err, io.EOF)
				break
			}
			require.Equal(t, 1, e.Lines)
			if string(e.Data) == "[DONE]" {
				require.Contains(t, string(body), "done")
				continue
			}
			var c answer.Chunk
			c.Parse(e.Data)
			require.True(t, c.Valid, "%s", e.Data)
		}
		if done := completion(body); rawjson.Valid(body) {
			require.True(t, rawjson.Valid(done), "%s", done)
		} else {
			require.Equal(t, string(body), string(done))
		}
	})
}

// Whatever is asked: a JSON text, or an error for the client.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:image/png;base64,AAAA"}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":{"text":"x"}}],"stop":["a"],"reasoning":{"effort":"max"},"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"tools":[1],"keep_alive":"5m"}`))
	f.Add([]byte(`{"model":{},"messages":[{"role":3,"content":null,"reasoning":"x","function_call":{"arguments":{"a":1}}}],"temperature":"1","max_tokens":1e9}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := ollama.Request(body, 8192, true)
		if err != nil {
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			return
		}
		require.True(t, rawjson.Valid(out), "%s", out)
	})
}
