package systemcontext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/systemcontext"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
)

//
func TestMessage(t *testing.T) {
	t.Parallel()
	routed, configured, piped := &contract.Decision{Provider: "groq"}, &contract.Decision{Model: "m", Configured: true}, &contract.Decision{Model: "p", Configured: true}
	load := func(more string) *systemcontext.Context {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(`
providers: [{id: x, url: "http://127.0.0.1:1", key: k}]
upstreams: [{id: u, provider: x, model: r}]
models: [{name: m, upstreams: [u]}, {name: p, upstreams: [u], pipeline: true}]
`+more), 0o600))
		c, _, err := config.Load(config.Environment{Dir: dir, Lookup: func(string) (string, bool) { return "", false }})
		require.NoError(t, err)
		return systemcontext.New(c)
	}
	at := time.Date(2026, 5, 4, 23, 30, 0, 0, time.UTC)
	seoul := load(`server: {time_zone: Asia/Seoul, locale: ko}`)
	text := gjson.GetBytes(seoul.Message(&contract.Request{Operation: contract.Chat, Decision: routed}, at), "content").Str
	require.True(t, strings.HasPrefix(text, "[SYSTEM CONTEXT]\n"))
	require.Contains(t, text, "2026-05-05")
	require.Contains(t, text, contract.WebContextName)
	require.Contains(t, text, "[PUBLISHED_DATE]")

	utc := load(`server: {time_zone: UTC}`)
	for name, tt := range map[string]struct {
		request contract.Request
		want    bool
	}{
		"routed":                              {contract.Request{Operation: contract.Chat, Decision: routed}, true},
		"configured":                          {contract.Request{Operation: contract.Chat, Decision: configured}, false},
		"configured, a session":               {contract.Request{Operation: contract.Chat, Decision: configured, SessionID: "s"}, true},
		"configured with pipeline":            {contract.Request{Operation: contract.Chat, Decision: piped}, true},
		"embeddings":                          {contract.Request{Operation: contract.Embeddings, Decision: routed}, false},
		"embeddings of a pipeline":            {contract.Request{Operation: contract.Embeddings, Decision: piped}, false},
		"routed, a session":                   {contract.Request{Operation: contract.Chat, Decision: routed, SessionID: "s"}, true},
		"configured with pipeline, a session": {contract.Request{Operation: contract.Chat, Decision: piped, SessionID: "s"}, true},
	} {
		got := utc.Message(&tt.request, at)
		require.Equal(t, tt.want, got != nil, name)
		if tt.want {
			require.True(t, gjson.ValidBytes(got))
			require.Equal(t, "system", gjson.GetBytes(got, "role").Str)
			require.Contains(t, string(got), "2026-05-04")
		}
	}
	require.Nil(t, load(`sessions: {system_context: false}`).Message(&contract.Request{Operation: contract.Chat, Decision: routed}, at))
}
