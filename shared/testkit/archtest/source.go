package archtest

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// File is one Go source file.
type File struct {
	Path    string // slash-separated, from the root of the repository
	Imports []string
}

// Test says whether the file belongs to tests: by its name, or because it is in a package for tests.
func (f File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") || forTests(f.Package()) }

// forTests says whether a package is there for tests: it is in testkit, or its name ends in "test" like that of net/http/httptest.
func forTests(pkg string) bool {
	return within(pkg, "hydrallm") && (within(pkg, "hydrallm/shared/testkit") || strings.HasSuffix(pkg, "test"))
}

// Package is the import path of the file's directory.
func (f File) Package() string { return "hydrallm/" + path.Dir(f.Path) }

// Root finds the directory of go.work above the working directory.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("looking for go.work: %w", fs.ErrNotExist)
		}
		dir = parent
	}
}

// Sources reads every Go file under docs, services and shared.
func Sources(root string) ([]File, error) {
	var files []File
	for _, top := range []string{"docs", "services", "shared"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir() || filepath.Ext(name) != ".go":
				return nil
			}
			file, err := source(root, name)
			files = append(files, file)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the sources: %w", err)
		}
	}
	return files, nil
}

func source(root, name string) (File, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
	if err != nil {
		return File{}, err
	}
	rel, err := filepath.Rel(root, name)
	if err != nil {
		return File{}, err
	}
	file := File{Path: filepath.ToSlash(rel)}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return File{}, err
		}
		file.Imports = append(file.Imports, imported)
	}
	return file, nil
}

// within says whether a slash-separated path is one of the prefixes or below one.
func within(name string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(p string) bool { return name == p || strings.HasPrefix(name, p+"/") })
}
