package httpapi

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// a path has one meaning, or it is refused.
func TestPathOf(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"/":                               "/",
		"/v1/models":                      "/v1/models",
		"/v1/models/":                     "/v1/models/",
		"/v1/models?x=/../a//b":           "/v1/models",
		"/v1/chat/completions":            "/v1/chat/completions",
		"/v1/models/prov/ns/name:tag":     "/v1/models/prov/ns/name:tag",
		"/v1/models/prov%2Fns%2fn%3Atag":  "/v1/models/prov/ns/n:tag",
		"/v1/models/a%20b%25c":            "/v1/models/a b%c",
		"/v1/models/a...b/..c/d..":        "/v1/models/a...b/..c/d..",
		"/v1/models/%67pt-4%2e1":          "/v1/models/gpt-4.1",
		"/v1/models/x%252e%252e":          "/v1/models/x%2e%2e",
		"/v1/models/%ED%95%9C":            "/v1/models/한",
		"/v1/sessions/a%20b%3Ac":          "/v1/sessions/a b:c",
		"http://host:8100/v1/models?x":    "/v1/models",
		"HTTPS://host":                    "/",
		"http://host?x":                   "/",
		"/v1/models/x?y=http://other/z/.": "/v1/models/x",
	}
	for target, want := range good {
		got, bad := pathOf(target)
		require.Nil(t, bad, target)
		require.Equal(t, want, got, target)
	}
	for _, target := range []string{
		"", "*", "v1/models", "host:443", "x://host/v1/models", "file:///v1/models",
		"//", "//v1/models", "/v1//models", "/v1/models//", "/v1/models//x", "/v1/models/x//y", "http://host//v1",
		"/.", "/..", "/./v1", "/v1/.", "/v1/..", "/v1/../v1/models", "/v1/models/..", "/v1/models/../admin/status", "/v1/models/./x",
		"/v1/%2e/models", "/v1/%2E%2e/models", "/v1/.%2e/models", "/v1/models/%2e%2e/admin", "/v1/models/..%2Fadmin/status", "/v1/models/x%2f..%2f..%2fadmin",
		"/v1%2Fmodels", "/v1/chat%2fcompletions", "/v1/sessions/a%2Fb", "/v1/sessions/a%5Cb", "%2Fv1/models", "/%2Fv1/models",
		"/v1/%61dmin/status", "/v1/%6dodels/x", "/v1/m%6Fdels", "/v1/x%2Dy", "/v1/x%7Ey", "/v1/models%2Fx",
		"/v1/models/%", "/v1/models/%2", "/v1/models/%zz", "/v1/%g0", `/v1\models`, `/v1/models/x\..\y`, "/v1/models#x", "/v1/models/#/../x",
	} {
		_, bad := pathOf(target)
		require.NotNil(t, bad, target)
		require.Equal(t, "invalid_path", bad.Code)
	}
}

// Whatever is accepted is a path that normalisation leaves alone, and only ids have two spellings.
func FuzzPathOf(f *testing.F) {
	for _, seed := range []string{"/v1/models/a%2Fb", "/v1/../x", "http://h/v1/models?x#y", "/v1/%61", "//", "*", "/v1/x%zz"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, target string) {
		path, bad := pathOf(target)
		if bad != nil {
			return
		}
		require.True(t, strings.HasPrefix(path, "/"))
		require.NotContains(t, target[:strings.IndexAny(target+"?", "?")], `\`)
		segments := strings.Split(path, "/")
		require.False(t, slices.Contains(segments, "..") || slices.Contains(segments, "."))
		if strings.HasPrefix(path, pathModels+"/") {
			require.Contains(t, target, pathModels+"/", "the prefix is written as it is")
			return
		}
		require.NotContains(t, path, "//")
		if strings.HasPrefix(path, prefixAdmin) {
			require.Contains(t, target, prefixAdmin)
		}
	})
}

// the hint names what is wrong with the base URL, and the right route.
func TestBaseHint(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ has, route string }{
		"/chat/completions":                            {"lacks /v1", "/v1/chat/completions"},
		"/chat/completions/":                           {"lacks /v1", "/v1/chat/completions"},
		"/embeddings":                                  {"lacks /v1", "/v1/embeddings"},
		"/models":                                      {"lacks /v1", "/v1/models"},
		"/models/gpt-4":                                {"lacks /v1", "/v1/models"},
		"/api/chat/completions":                        {"lacks /v1", "/v1/chat/completions"},
		"/openai/deployments/m/chat/completions":       {"lacks /v1", "/v1/chat/completions"},
		"/v1/v1/chat/completions":                      {"/v1 twice", "/v1/chat/completions"},
		"/v1/v1/v1/models/x":                           {"/v1 twice", "/v1/models"},
		"/v1/v1/embeddings":                            {"/v1 twice", "/v1/embeddings"},
		"/v1/chat/completions/chat/completions":        {"without the endpoint", "/v1/chat/completions"},
		"/v1/chat/completions/models":                  {"without the endpoint", "/v1/models"},
		"/api/v1/chat/completions":                     {"without /api before it", "/v1/chat/completions"},
		"/v1/engines/x/v1/chat/completions":            {"without /v1/engines/x before it", "/v1/chat/completions"},
		"/v1beta/openai/chat/completions":              {"lacks /v1", "/v1/chat/completions"},
		"/nothing":                                     {},
		"/v1/chat":                                     {},
		"/v1/no/such/route":                            {},
		"/v1/chat/completions/x":                       {},
		"/" + strings.Repeat("x", 1000) + "/v1/models": {"...", "/v1/models"},
	}
	for path, want := range tests {
		hint := baseHint(path)
		if want.has == "" {
			require.Empty(t, hint, path)
			continue
		}
		require.Contains(t, hint, want.has, path)
		require.Contains(t, hint, want.route, path)
		require.Less(t, len(hint), 350)
	}
	f := noRoute("GET", "/"+strings.Repeat("\xff", 10_000))
	require.Equal(t, 404, f.Status())
	require.Less(t, len(f.Message), 1000)
	for i := range operations {
		require.Contains(t, f.Message, " "+operations[i].path)
	}
}
