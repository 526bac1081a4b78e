package ingress_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
)

// nothing is installed unless that is switched on, never without an admin key, and only what is on the list; the refusal says what to do by hand.
func TestInstallIsOff(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ingress.Config){
		"switched off": withAdmin,
		"open routes":  func(c *ingress.Config) { c.Debug, c.ToolInstall = true, true },
		"both":         func(c *ingress.Config) { c.Debug = true },
	} {
		g := setup(t, change)
		for _, tool := range []string{"opencode", "openclaw", "openclaw-mllm-auto"} {
			a := g.admin(http.MethodPost, "install/"+tool, "{broken")
			message, code := requireError(t, a, http.StatusForbidden)
			require.Equal(t, "tool_install_disabled", code, name)
			require.Contains(t, message, "npm install --global "+strings.TrimSuffix(tool, "-mllm-auto"), name)
		}
		for _, tool := range []string{"rm-rf", "opencode;id", "opencode%3Bid", "OpenCode"} {
			requireError(t, g.admin(http.MethodPost, "install/"+tool, ""), http.StatusNotFound)
		}
		requireError(t, g.admin(http.MethodGet, "install/opencode", ""), http.StatusMethodNotAllowed)
		a := g.admin(http.MethodGet, "install/status", "")
		require.JSONEq(t, `{"opencode":{"installed":false,"path":"","version":""},"openclaw":{"installed":false,"path":"","version":""}}`, a.body, name)
	}
}

// when it is on, the answer says what came of it.
func TestInstallThatFails(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) {
		c.AdminKey, c.ToolInstall, c.Environ = adminKey, true, []string{"PATH=" + t.TempDir()}
	})
	a := g.admin(http.MethodPost, "install/opencode", "")
	require.Equal(t, http.StatusOK, a.StatusCode, a.body)
	require.False(t, gjson.Get(a.body, "success").Bool())
	require.Contains(t, gjson.Get(a.body, "message").Str, "npm")
}
