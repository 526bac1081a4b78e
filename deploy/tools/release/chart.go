package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// chart packs deploy/helm/hydrallm as `helm package` does, with the version.
func (r *release) chart() error {
	charts := os.DirFS(filepath.Join(r.root, "deploy", "helm"))
	var files []file
	err := fs.WalkDir(charts, "hydrallm", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f := file{name: name, path: filepath.Join(r.root, "deploy", "helm", filepath.FromSlash(name)), mode: 0o644}
		if name == "hydrallm/Chart.yaml" {
			text, err := fs.ReadFile(charts, name)
			if err != nil {
				return err
			}
			text = chartVersion.ReplaceAll(text, []byte("version: "+r.version.semantic))
			f.data, f.path = appVersion.ReplaceAll(text, []byte(`appVersion: "`+r.version.given+`"`)), ""
		}
		files = append(files, f)
		return nil
	})
	if err != nil {
		return err
	}
	return r.create("helm/hydrallm-"+r.version.semantic+".tgz", files, writeTarGz)
}
