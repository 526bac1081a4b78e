package mcpclient

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/page"
)

// whatever an MCP server answers to a call, it is text of a bounded length or an error of one.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"hi"},{"type":"resource","resource":{"uri":"u","text":"x"}},{"type":"image","data":"aGk=","mimeType":"image/png"}]}`))
	f.Add([]byte(`{"isError":true,"content":[{"type":"text","text":"\ud83d\n no"}],"structuredContent":[1]}`))
	f.Add([]byte(`{"content":[{"type":"resource"},{"type":"resource_link","uri":"u"},null]}`))
	f.Fuzz(func(t *testing.T, answer []byte) {
		var result mcp.CallToolResult
		if json.Unmarshal(answer, &result) != nil {
			return
		}
		text, err := read("tool", &result)
		require.True(t, utf8.ValidString(text))
		require.LessOrEqual(t, utf8.RuneCountInString(text), page.MaxRunes)
		if err != nil {
			require.Empty(t, text)
			require.LessOrEqual(t, utf8.RuneCountInString(err.Error()), maxReason+100)
		}
	})
}
