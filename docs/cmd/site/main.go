// Command site writes the documents as a web site into a directory, for any server of files.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"hydrallm/docs"
	"hydrallm/docs/site"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: site DIRECTORY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func write(dir string) error {
	s := site.New(docs.Files)
	paths, err := s.Paths()
	if err != nil {
		return err
	}
	for _, name := range paths {
		text, err := s.File(name)
		if err != nil {
			return err
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil { //nolint:gosec // a server of files reads it
			return fmt.Errorf("making the directory of a page: %w", err)
		}
		if err := os.WriteFile(file, text, 0o644); err != nil { //nolint:gosec // a server of files reads it
			return fmt.Errorf("writing a page: %w", err)
		}
	}
	fmt.Fprintf(os.Stdout, "%d files in %s: begin with index.html\n", len(paths), dir)
	return nil
}
