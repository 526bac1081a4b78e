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
	root := filepath.Join(r.root, "deploy", "helm", "hydrallm")
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(filepath.Dir(root), path)
		if err != nil {
			return err
		}
		f := file{name: filepath.ToSlash(name), path: path, mode: 0o644}
		if f.name == "hydrallm/Chart.yaml" {
			text, err := os.ReadFile(path)
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
