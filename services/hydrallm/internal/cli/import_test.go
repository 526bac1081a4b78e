package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const foreign = `
model_list:
  - {model_name: chat, litellm_params: {model: openai/gpt-4o, api_key: sk-plain-secret-1}}
  - {model_name: local, litellm_params: {model: ollama/qwen3}}
general_settings: {master_key: os.environ/MASTER, brand_new: 1}
`

// what comes in is checked and written, with secrets in a file of their own if at all, and without taking the place of anything.
func TestImport(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "")
	file := func(name string) string { return filepath.Join(x.dir, name) }
	require.NoError(t, os.WriteFile(file("litellm.yaml"), []byte(foreign), 0o600))
	require.Equal(t, 0, x.run(t.Context(), "import", "litellm.yaml"), x.errOut.String())
	require.NoFileExists(t, file(".env"))
	report := x.errOut.String()
	for _, text := range []string{
		"litellm.yaml:5: general_settings.brand_new (number): has no counterpart",
		"litellm.yaml is a configuration of litellm: 2 providers, 2 upstreams, 2 models taken over",
		"OPENAI_API_KEY: its value is in litellm.yaml, at model_list[0].litellm_params.api_key", "MASTER: general_settings.master_key", "hydrallm check config.yaml",
	} {
		require.Contains(t, report, text)
	}
	written, err := os.ReadFile(file("config.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(written), "#   litellm.yaml:5: general_settings.brand_new (number): has no counterpart")
	require.NotContains(t, string(written)+report+x.out.String(), "plain-secret")

	require.Equal(t, 1, x.run(t.Context(), "import", "litellm.yaml", "--env-file", ".env"))
	require.Contains(t, x.errOut.String(), "config.yaml is there already: choose another name, or replace it with --force")
	require.NoFileExists(t, file(".env"))
	require.Equal(t, 1, x.run(t.Context(), "import", "litellm.yaml", "-o", "litellm.yaml", "--force"))
	require.Contains(t, x.errOut.String(), "litellm.yaml is what is read")
	require.Equal(t, 1, x.run(t.Context(), "import", "litellm.yaml", "-o", "new.yaml", "--env-file", "new.yaml"))
	require.Contains(t, x.errOut.String(), "name one file")
	require.Equal(t, 0, x.run(t.Context(), "import", "litellm.yaml", "--force", "--env-file", ".env"))
	env, err := os.ReadFile(file(".env"))
	require.NoError(t, err)
	require.Equal(t, "OPENAI_API_KEY=sk-plain-secret-1\n", string(env))
	info, err := os.Stat(file(".env"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	require.NotContains(t, x.errOut.String()+x.out.String(), "plain-secret")

	x.env = map[string]string{"MASTER": "m"} // the key is in .env
	require.Equal(t, 0, x.run(t.Context(), "check"), x.errOut.String())
	require.Contains(t, x.out.String(), "config.yaml is valid: 2 providers, 2 upstreams, 2 models, 0 warnings")
}

// standard input and output, and what is refused.
func TestImportThroughPipes(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "")
	x.in = strings.NewReader(foreign)
	require.Equal(t, 0, x.run(t.Context(), "import", "-", "-o", "-"), x.errOut.String())
	require.Contains(t, x.out.String(), "key: ${OPENAI_API_KEY}")
	require.NoFileExists(t, filepath.Join(x.dir, "config.yaml"))

	x.in = strings.NewReader("services: {}")
	require.Equal(t, 1, x.run(t.Context(), "import", "-"))
	require.Contains(t, x.errOut.String(), "is no configuration that can be taken over")
	require.Equal(t, 1, x.run(t.Context(), "import", "none.yaml"))
	require.Contains(t, x.errOut.String(), "none.yaml: no such file")
	require.Equal(t, 2, x.run(t.Context(), "import", "none.yaml", "--from", "haproxy"))
	require.NoFileExists(t, filepath.Join(x.dir, "config.yaml"))
}
