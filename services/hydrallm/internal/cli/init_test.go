package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// what is found becomes a configuration that passes the check; keys of the gateway are made into .env, and nothing is replaced.
func TestInit(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"object": "list", "data": [{"id": "qwen3:8b"}]}`))
	}))
	defer server.Close()
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	x := newTerminal(t, "")
	x.local = func(port string) string {
		if port == "11434" {
			return strings.TrimPrefix(server.URL, "http://")
		}
		return strings.TrimPrefix(nobody.URL, "http://")
	}
	x.env = map[string]string{"GROQ_API_KEY": "secret-groq"}
	file := func(name string) string { return filepath.Join(x.dir, name) }
	require.NoError(t, os.WriteFile(file(".env"), []byte("MISTRAL_API_KEY=secret-mistral"), 0o600))

	x.in = strings.NewReader("all\n\n\n\nyes\n\n") // client keys are wanted
	require.Equal(t, 0, x.run(t.Context(), "init"), x.errOut.String())
	said := x.out.String()
	for _, text := range []string{
		"found groq, with the key in GROQ_API_KEY", "found mistral, with the key in MISTRAL_API_KEY", "found ollama on this machine, with one model",
		"wrote config.yaml: 3 providers, 1 model of this machine", "wrote .env: ADMIN_API_KEY, CLIENT_API_KEYS", "  hydrallm check\n  hydrallm\n  curl -N http://127.0.0.1:8100/v1/chat/completions",
	} {
		require.Contains(t, said, text)
	}
	env, err := os.ReadFile(file(".env"))
	require.NoError(t, err)
	require.Regexp(t, `\AMISTRAL_API_KEY=secret-mistral\nADMIN_API_KEY=[0-9a-f]{64}\nCLIENT_API_KEYS=hk-[0-9a-f]{64}\n\z`, string(env))
	written, err := os.ReadFile(file("config.yaml"))
	require.NoError(t, err)
	require.NotContains(t, string(written)+said, "secret-")
	require.NotContains(t, said, "hk-")
	require.Equal(t, 0, x.run(t.Context(), "check", "--strict"), x.out.String()+x.errOut.String())
	require.Contains(t, x.out.String(), "config.yaml is valid: 3 providers, 1 upstream, 1 model, 0 warnings")

	require.Equal(t, 1, x.run(t.Context(), "init", "--yes"))
	require.Contains(t, x.errOut.String(), "config.yaml is there already")
	x.in = nil
	require.Equal(t, 0, x.run(t.Context(), "init", "--force"), x.errOut.String())
	again, err := os.ReadFile(file(".env"))
	require.NoError(t, err)
	require.Equal(t, string(env), string(again)) // its keys are there
	require.Equal(t, 0, x.run(t.Context(), "init", "-y", "-o", "other.yaml"), x.errOut.String())
	require.Contains(t, x.out.String(), "CONFIG_PATH=other.yaml hydrallm")
}

// where nothing is found a file is written all the same, which passes the check, and it is said what to do.
func TestInitFindsNothing(t *testing.T) {
	t.Parallel()
	nobody := httptest.NewServer(http.NotFoundHandler())
	defer nobody.Close()
	x := newTerminal(t, "")
	x.local = func(string) string { return strings.TrimPrefix(nobody.URL, "http://") }
	require.Equal(t, 0, x.run(t.Context(), "init", "--yes"), x.errOut.String())
	require.Contains(t, x.out.String(), "Nothing was found: set GEMINI_API_KEY")
	require.Equal(t, 0, x.run(t.Context(), "check", "--strict"), x.out.String()+x.errOut.String())
}
