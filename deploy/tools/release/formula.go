package main

import (
	"io"
	"path/filepath"
	"strings"
	"text/template"
)

// formula writes the formula for Homebrew, with the archives of the platforms that it knows.
func (r *release) formula(platforms []string) error {
	type archive struct{ URL, Sum string }
	archives := map[string]archive{}
	for _, p := range platforms {
		system, arch, _ := strings.Cut(p, "/")
		if system == "windows" {
			continue
		}
		name := strings.Join([]string{"hydrallm", r.version.given, system, arch}, "_") + ".tar.gz"
		sum, err := r.sum(name)
		if err != nil {
			return err
		}
		archives[system+"_"+arch] = archive{r.url + "/" + r.version.given + "/" + name, sum}
	}
	t, err := template.ParseFiles(filepath.Join(r.root, "deploy", "homebrew", "hydrallm.rb.tmpl"))
	if err != nil {
		return err
	}
	return r.fill("homebrew/hydrallm.rb", func(w io.Writer) error {
		return t.Execute(w, map[string]any{"Version": r.version.semantic, "Given": r.version.given, "Home": r.url, "Archives": archives})
	})
}
