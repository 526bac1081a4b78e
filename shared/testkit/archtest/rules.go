package archtest

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// roots are the packages through which the all-in-one binary starts the services.
var roots = []string{
	"hydrallm/services/analyzer", "hydrallm/services/dispatcher", "hydrallm/services/enricher", "hydrallm/services/ingress",
	"hydrallm/services/session-writer",
}

// owned says which parts of the repository may import a dependency. Everybody else has to go through them.
var owned = []struct {
	what    string
	imports []string
	owners  []string
}{
	{"NATS", []string{"github.com/nats-io"}, []string{"shared/bus", "shared/topology", "shared/testkit", "services/hydrallm"}},
	{"fasthttp", []string{"github.com/valyala/fasthttp"}, []string{"services/ingress"}},
	{"Markdown", []string{"github.com/yuin/goldmark"}, []string{"docs", "services/ingress"}},
	{"rod", []string{"github.com/go-rod"}, []string{"services/enricher", "services/hydrallm/e2e"}}, // the end-to-end tests look at the web interface
	{
		"a database",
		[]string{"database/sql", "github.com/jmoiron/sqlx", "github.com/lib/pq", "github.com/pressly/goose/v3", "modernc.org/sqlite"},
		[]string{"services/session-writer", "shared/testkit/pgtest"},
	},
}

// testOnly may be imported by tests and by packages for tests alone.
var testOnly = []string{"github.com/stretchr/testify", "go.uber.org/goleak", "testing"}

// vague are package names that say nothing about what a package gives.
var vague = []string{"util", "utils", "common", "types", "models", "model", "helpers", "helper", "misc", "base"}

// Violations lists what breaks the rules, one sentence each.
func Violations(files []File) []string {
	var found []string
	for _, f := range files {
		if reason := misplaced(f); reason != "" {
			found = append(found, fmt.Sprintf("%s: %s", f.Path, reason))
		}
		for _, imported := range f.Imports {
			if reason := forbidden(f, imported); reason != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", f.Path, imported, reason))
			}
		}
	}
	return found
}

// misplaced says what is wrong with the place of a file, if anything is.
func misplaced(f File) string {
	parts := strings.Split(path.Dir(f.Path), "/")
	if name := parts[len(parts)-1]; slices.Contains(vague, name) {
		return fmt.Sprintf("package %s is not named for what it gives", name)
	}
	if parts[0] != "services" || len(parts) == 2 {
		return ""
	}
	service, place := parts[1], parts[2]
	switch {
	case place == "internal", service == "hydrallm" && place == "e2e":
		return ""
	case place == "cmd" && len(parts) == 4 && parts[3] == service:
		return ""
	default:
		return "a service has its root package, cmd/" + service + " and internal"
	}
}

// forbidden says why a file may not import something, if it may not.
func forbidden(f File, imported string) string {
	if within(imported, "hydrallm") {
		if reason := wrongDirection(f, imported); reason != "" {
			return reason
		}
	}
	for _, o := range owned {
		if within(imported, o.imports...) && !within(f.Path, o.owners...) {
			return fmt.Sprintf("only %s may know %s", strings.Join(o.owners, ", "), o.what)
		}
	}
	if !f.Test() && (within(imported, testOnly...) || forTests(imported)) {
		return "it is for tests"
	}
	return ""
}

// wrongDirection is about imports between the parts of this repository.
func wrongDirection(f File, imported string) string {
	switch {
	case within(f.Path, "shared/testkit"):
		if !within(imported, "hydrallm/shared/testkit") {
			return "testkit stands alone"
		}
	case within(f.Path, "shared"):
		if !within(imported, "hydrallm/shared") {
			return "shared imports no service"
		}
	case within(f.Path, "docs"):
		if !within(imported, "hydrallm/docs") {
			return "the documents stand alone"
		}
	case within(f.Path, "services"):
		service := strings.Join(strings.Split(f.Package(), "/")[:3], "/")
		switch {
		case within(imported, "hydrallm/shared", "hydrallm/docs"), within(imported, service):
		case service == "hydrallm/services/hydrallm" && slices.Contains(roots, imported):
		default:
			return "services meet through messages, not imports"
		}
	}
	return ""
}
