package archtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/archtest"
)

// dependencies point inwards only.
func TestRepositoryKeepsTheRules(t *testing.T) {
	t.Parallel()
	root, err := archtest.Root()
	require.NoError(t, err)
	files, err := archtest.Sources(root)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	require.Empty(t, archtest.Violations(files))
}

func TestRepositoryModulesAreTiedTogether(t *testing.T) {
	t.Parallel()
	root, err := archtest.Root()
	require.NoError(t, err)
	faults, err := archtest.ModuleFaults(root)
	require.NoError(t, err)
	require.Empty(t, faults)
}

// Whoever meets an id in a test or a comment finds in the documents what it means.
func TestRepositoryDefinesItsIDs(t *testing.T) {
	t.Parallel()
	root, err := archtest.Root()
	require.NoError(t, err)
	faults, err := archtest.IDFaults(root)
	require.NoError(t, err)
	require.Empty(t, faults)
}

func TestRepositoryHasNoDeadLinks(t *testing.T) {
	t.Parallel()
	root, err := archtest.Root()
	require.NoError(t, err)
	dead, err := archtest.DeadLinks(root)
	require.NoError(t, err)
	require.Empty(t, dead)
}

func TestViolations(t *testing.T) {
	t.Parallel()
	const (
		nats    = "github.com/nats-io/nats.go/jetstream"
		fast    = "github.com/valyala/fasthttp"
		testify = "github.com/stretchr/testify/require"
	)
	tests := map[string]struct {
		path    string
		imports string
		ok      bool
	}{
		"service uses shared":                    {"services/analyzer/analyzer.go", "hydrallm/shared/bus", true},
		"service uses its own code":              {"services/analyzer/analyzer.go", "hydrallm/services/analyzer/internal/route", true},
		"service uses another service":           {"services/analyzer/analyzer.go", "hydrallm/services/ingress", false},
		"a test uses another service":            {"services/analyzer/analyzer_test.go", "hydrallm/services/ingress", false},
		"a name that only starts the same":       {"services/ingress/ingress.go", "hydrallm/services/ingress2", false},
		"all-in-one uses a root":                 {"services/hydrallm/internal/pipeline/pipeline.go", "hydrallm/services/session-writer", true},
		"all-in-one uses below a root":           {"services/hydrallm/internal/pipeline/pipeline.go", "hydrallm/services/ingress/x", false},
		"shared uses a service":                  {"shared/bus/bus.go", "hydrallm/services/ingress", false},
		"testkit uses shared":                    {"shared/testkit/natstest/natstest.go", "hydrallm/shared/bus", false},
		"the documents use shared":               {"docs/site/site.go", "hydrallm/shared/fault", false},
		"a service uses the documents":           {"services/ingress/internal/httpapi/docs.go", "hydrallm/docs/site", true},
		"NATS in the bus":                        {"shared/bus/bus.go", nats, true},
		"NATS in the all-in-one":                 {"services/hydrallm/internal/broker/server.go", "github.com/nats-io/nats-server/v2/server", true},
		"NATS in a service":                      {"services/ingress/ingress.go", nats, false},
		"NATS elsewhere in shared":               {"shared/contract/frame.go", nats, false},
		"NATS in a directory that starts alike":  {"shared/business/bus.go", nats, false},
		"fasthttp in ingress":                    {"services/ingress/internal/httpapi/server.go", fast, true},
		"fasthttp elsewhere":                     {"services/dispatcher/internal/upstream/client.go", fast, false},
		"rod elsewhere":                          {"services/ingress/ingress.go", "github.com/go-rod/rod", false},
		"rod in end-to-end tests":                {"services/hydrallm/e2e/webui/visit_test.go", "github.com/go-rod/rod", true},
		"rod in the all-in-one":                  {"services/hydrallm/internal/cli/serve.go", "github.com/go-rod/rod", false},
		"SQL in the session writer":              {"services/session-writer/internal/store/store.go", "github.com/jmoiron/sqlx", true},
		"SQL elsewhere":                          {"services/dispatcher/dispatcher.go", "database/sql", false},
		"testkit in a test":                      {"services/ingress/ingress_test.go", "hydrallm/shared/testkit/natstest", true},
		"testkit in production":                  {"services/ingress/ingress.go", "hydrallm/shared/testkit/natstest", false},
		"testify in production":                  {"shared/bus/bus.go", testify, false},
		"testify in testkit":                     {"shared/testkit/goldentest/goldentest.go", testify, true},
		"testify in a package for tests":         {"services/dispatcher/internal/slot/slottest/suite.go", testify, true},
		"a package for tests in production":      {"services/dispatcher/dispatcher.go", "hydrallm/services/dispatcher/internal/slot/slottest", false},
		"package testing in production":          {"shared/bus/bus.go", "testing", false},
		"a fake clock is not package testing":    {"shared/bus/bus_test.go", "testing/synctest", true},
		"main of a service":                      {"services/ingress/cmd/ingress/main.go", "hydrallm/services/ingress", true},
		"main with another name":                 {"services/ingress/cmd/tool/main.go", "hydrallm/services/ingress", false},
		"code of a service outside internal":     {"services/ingress/sse/sse.go", "fmt", false},
		"end-to-end tests of the all-in-one":     {"services/hydrallm/e2e/compose_test.go", "os/exec", true},
		"a package that is named for what it is": {"shared/util/strings.go", "strings", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := archtest.Violations([]archtest.File{{Path: tt.path, Imports: []string{tt.imports}}})
			if tt.ok {
				require.Empty(t, found)
			} else {
				require.Len(t, found, 1)
			}
		})
	}
}

func TestModuleFaults(t *testing.T) {
	t.Parallel()
	const work = "go 1.26.0\n\nuse (\n\t./shared\n\t./services/a\n)\n"
	const shared = "module hydrallm/shared\n\ngo 1.26.0\n"
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"sound": {
			files: map[string]string{
				"go.work": work, "shared/go.mod": shared,
				"services/a/go.mod": "module hydrallm/services/a\n\ngo 1.26.0\n\nrequire hydrallm/shared v0.0.0\n\nreplace hydrallm/shared => ../../shared\n",
			},
		},
		"no replace line": {
			files: map[string]string{
				"go.work": work, "shared/go.mod": shared,
				"services/a/go.mod": "module hydrallm/services/a\n\ngo 1.26.0\n\nrequire (\n\thydrallm/shared v0.0.0\n)\n",
			},
			want: []string{"services/a: no replace line for hydrallm/shared"},
		},
		"replaced by something else": {
			files: map[string]string{
				"go.work": work, "shared/go.mod": shared,
				"services/a/go.mod": "module hydrallm/services/a\n\ngo 1.26.0\n\nrequire hydrallm/shared v0.0.0\n\nreplace hydrallm/shared => ../shared\n",
			},
			want: []string{"services/a: the replace line of hydrallm/shared leads to services/shared"},
		},
		"forgotten in go.work, with another name and version": {
			files: map[string]string{"go.work": work, "services/b/go.mod": "module hydrallm/b\n\ngo 1.25.0\n"},
			want: []string{
				"services/b: not in go.work", "services/b: the module is not called hydrallm/services/b",
				"services/b: the go line differs from go.work, which says 1.26.0",
			},
		},
		"tools stay outside": {
			files: map[string]string{"go.work": work, "deploy/tools/go.mod": "module hydrallm/deploy/tools\n\ngo 1.25.0\n"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := archtest.ModuleFaults(repository(t, tt.files))
			require.NoError(t, err)
			require.Equal(t, tt.want, faults)
		})
	}
}

func TestIDFaults(t *testing.T) {
	t.Parallel()
	const defined = "# Page\n\n- **R-001** It works.\n- **R-002 [x]** It goes on.\n\n| id | behaviour |\n|---|---|\n| SSE-10 | Comments. |\n| SSE-10c | More. |\n"
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"all are defined": {
			files: map[string]string{
				"docs/page.md": defined, "docs/adr/1.md": "as R-002 says\n",
				"shared/a/a.go": "// R-001, SSE-10 to SSE-10c: UTF-16 and SHA-256 are none, nor are X-1, R-1234 and a4-R-0.\npackage a\n",
			},
		},
		"cited in a comment": {
			files: map[string]string{"docs/page.md": defined, "shared/a/a.go": "package a\n\n// B is R-003.\n"},
			want:  []string{"shared/a/a.go:3: no document defines R-003"},
		},
		"cited in a text of a test": {
			files: map[string]string{"docs/page.md": defined, "shared/a/a_test.go": "package a\n\nvar name = \"SSE-20b comments\"\n"},
			want:  []string{"shared/a/a_test.go:3: no document defines SSE-20b"},
		},
		"cited in a document": {
			files: map[string]string{"README.md": "See STR-01.\n"},
			want:  []string{"README.md:1: no document defines STR-01"},
		},
		"defined outside docs, and in passing": {
			files: map[string]string{"README.md": "- **R-001** It works.\n", "docs/page.md": "As **R-001** says, | R-001 | works.\n"},
			want: []string{
				"README.md:1: no document defines R-001", "docs/page.md:1: no document defines R-001", "docs/page.md:1: no document defines R-001",
			},
		},
		"defined twice": {
			files: map[string]string{"docs/page.md": defined, "docs/plans.md": "- **R-001** It will work.\n"},
			want:  []string{"docs/plans.md:1: R-001 is defined in docs/page.md:3 already"},
		},
		"test data cites what it likes": {
			files: map[string]string{"shared/a/testdata/a.go": "// R-001\npackage a\n", ".git/a.md": "R-001\n", "shared/a.txt": "R-001\n"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			faults, err := archtest.IDFaults(repository(t, tt.files))
			require.NoError(t, err)
			require.Equal(t, tt.want, faults)
		})
	}
}

func TestDeadLinks(t *testing.T) {
	t.Parallel()
	const page = "# A page\n\n## `GET /v1`: what's there?\n\n```\n# no heading\n```\n"
	tests := map[string]struct {
		files map[string]string
		want  []string
	}{
		"alive": {
			files: map[string]string{
				"docs/page.md": page + "[up](../README.md) [here](#a-page) [dir](sub/)\n", "docs/sub/x.md": "",
				"README.md": "[1](docs/page.md#get-v1-whats-there) [2](https://example.com/x#y) [3](docs/)\n",
			},
		},
		"no file":    {map[string]string{"docs/page.md": "\n[up](README.md)\n", "README.md": ""}, []string{"docs/page.md:2: nothing is at README.md"}},
		"no heading": {map[string]string{"docs/page.md": page, "README.md": "[1](docs/page.md#no-heading)"}, []string{"README.md:1: nothing is at docs/page.md#no-heading"}},
		"no path":    {map[string]string{"docs/page.md": "`docs/page.md`, `docs/<x>`, `shared/gone/`\n"}, []string{"docs/page.md:1: nothing is at shared/gone/"}},
		"no source": {
			map[string]string{"docs/page.md": "`a/b.go`, `c/b.go`, `b.go`, `x/a/b.go`\n", "shared/x/a/b.go": ""}, []string{"docs/page.md:1: nothing is at c/b.go"},
		},
		"not in here": {map[string]string{"docs/page.md": "[1](#page)\n"}, []string{"docs/page.md:1: nothing is at #page"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dead, err := archtest.DeadLinks(repository(t, tt.files))
			require.NoError(t, err)
			require.Equal(t, tt.want, dead)
		})
	}
}

// repository writes files into a directory of their own.
func repository(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		require.NoError(t, os.MkdirAll(filepath.Join(root, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(root, name), []byte(text), 0o644))
	}
	return root
}
