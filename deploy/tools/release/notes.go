package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// notes gives what the changelog says of the version.
func (r *release) notes() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "docs", "CHANGELOG.md"))
	if err != nil {
		return nil, err
	}
	return cut(string(text), r.version)
}

// relative finds links to other documents, which are not beside the notes.
var relative = regexp.MustCompile(`\[([^\]]+)\]\([^):]*\)`)

// cut takes the entry of a version out of a changelog (https://keepachangelog.com). A release needs one of its own that says something; a snapshot has what is unreleased.
func cut(changelog string, v version) ([]byte, error) {
	title := regexp.QuoteMeta(v.semantic)
	if v.snapshot {
		title = "Unreleased"
	}
	begin := regexp.MustCompile(`(?m)^## \[?` + title + `\]?(?: .*)?$`).FindStringIndex(changelog)
	if begin == nil {
		return nil, fmt.Errorf("docs/CHANGELOG.md has no entry %q", strings.ReplaceAll(title, `\`, ""))
	}
	entry := changelog[begin[1]:]
	if end := strings.Index(entry, "\n## "); end >= 0 {
		entry = entry[:end]
	}
	if strings.TrimSpace(entry) == "" {
		return nil, fmt.Errorf("docs/CHANGELOG.md says nothing of %q", strings.ReplaceAll(title, `\`, ""))
	}
	return []byte("# HydraLLM " + v.given + "\n\n" + relative.ReplaceAllString(strings.TrimSpace(entry), "$1") + "\n"), nil
}
