package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

var (
	goDirective = regexp.MustCompile(`(?m)^go (\S+)$`)
	useLine     = regexp.MustCompile(`(?m)^\s*(?:use )?\./(\S+)$`)
	moduleLine  = regexp.MustCompile(`(?m)^module (\S+)$`)
	ownLine     = regexp.MustCompile(`(?m)^\s*(?:require )?(hydrallm/\S+) v`)
	replaceLine = regexp.MustCompile(`(?m)^\s*(?:replace )?(hydrallm/\S+) => (\S+)$`)
)

// outside are modules that go.work leaves out on purpose: their dependencies must not raise ours.
var outside = []string{"deploy/kubernetes/check", "deploy/tools", "deploy/tools/release"}

// ModuleFaults lists what is wrong with the modules below root: one that go.work does not name, another Go version, a sibling without a
// replace line that leads to it.
func ModuleFaults(root string) ([]string, error) {
	work, err := os.ReadFile(filepath.Join(root, "go.work"))
	if err != nil {
		return nil, err
	}
	version := goDirective.FindStringSubmatch(string(work))
	if version == nil {
		return []string{"go.work has no go line"}, nil
	}
	var used []string
	for _, m := range useLine.FindAllStringSubmatch(string(work), -1) {
		used = append(used, m[1])
	}
	dirs, err := moduleDirs(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range dirs {
		if slices.Contains(outside, dir) {
			continue
		}
		if !slices.Contains(used, dir) {
			found = append(found, dir+": not in go.work")
		}
		text, err := os.ReadFile(filepath.Join(root, dir, "go.mod"))
		if err != nil {
			return nil, err
		}
		found = append(found, modFaults(dir, string(text), version[1])...)
	}
	return found, nil
}

func moduleDirs(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && name != root:
			return fs.SkipDir
		case entry.IsDir() || entry.Name() != "go.mod":
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		dirs = append(dirs, filepath.ToSlash(rel))
		return err
	})
	return dirs, err
}

func modFaults(dir, text, version string) []string {
	var found []string
	if m := moduleLine.FindStringSubmatch(text); m == nil || m[1] != "hydrallm/"+dir {
		found = append(found, dir+": the module is not called hydrallm/"+dir)
	}
	if m := goDirective.FindStringSubmatch(text); m == nil || m[1] != version {
		found = append(found, fmt.Sprintf("%s: the go line differs from go.work, which says %s", dir, version))
	}
	replaced := map[string]string{}
	for _, m := range replaceLine.FindAllStringSubmatch(text, -1) {
		replaced[m[1]] = m[2]
	}
	for _, m := range ownLine.FindAllStringSubmatch(text, -1) {
		target, ok := replaced[m[1]]
		if !ok {
			found = append(found, fmt.Sprintf("%s: no replace line for %s", dir, m[1]))
			continue
		}
		if got := filepath.ToSlash(filepath.Join(dir, target)); "hydrallm/"+got != m[1] {
			found = append(found, fmt.Sprintf("%s: the replace line of %s leads to %s", dir, m[1], got))
		}
	}
	return found
}
