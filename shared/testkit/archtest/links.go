package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	codeBlock = regexp.MustCompile("(?ms)^```.*?^```$")
	named     = regexp.MustCompile("`((?:services|shared|deploy|docs)/[\\w./-]+)`")
	goFile    = regexp.MustCompile("`((?:[\\w-]+/)+[\\w-]+\\.go)`") // by the end of its path
	// unanchored is what a heading loses on the way to its anchor.
	unanchored = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// DeadLinks lists the links of documents below root that lead to no file, or to no heading of a document, and the paths that they name in vain.
func DeadLinks(root string) ([]string, error) {
	texts, err := readTexts(root)
	if err != nil {
		return nil, err
	}
	anchors := map[string]map[string]bool{}
	var sources strings.Builder
	for _, t := range texts {
		if path.Ext(t.path) == ".md" {
			anchors[t.path] = anchorsOf(t.content)
		} else {
			sources.WriteString("/" + t.path + "\n")
		}
	}
	var found []string
	for _, t := range texts {
		if path.Ext(t.path) != ".md" {
			continue
		}
		for _, m := range link.FindAllStringSubmatchIndex(t.content, -1) {
			target := t.content[m[2]:m[3]]
			if strings.Contains(target, "://") {
				continue
			}
			file, anchor, _ := strings.Cut(target, "#")
			if file == "" {
				file = t.path
			} else {
				file = path.Join(path.Dir(t.path), file)
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil || anchor != "" && !anchors[file][anchor] {
				found = append(found, fmt.Sprintf("%s: nothing is at %s", t.place(m[0]), target))
			}
		}
		for _, m := range goFile.FindAllStringSubmatchIndex(t.content, -1) {
			if file := t.content[m[2]:m[3]]; !strings.Contains(sources.String(), "/"+file+"\n") {
				found = append(found, fmt.Sprintf("%s: nothing is at %s", t.place(m[0]), file))
			}
		}
		for _, m := range named.FindAllStringSubmatchIndex(t.content, -1) {
			file := t.content[m[2]:m[3]]
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				found = append(found, fmt.Sprintf("%s: nothing is at %s", t.place(m[0]), file))
			}
		}
	}
	return found, nil
}

// anchorsOf gives the anchors that readers of Markdown make of its headings.
func anchorsOf(content string) map[string]bool {
	anchors := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(content, ""), -1) {
		anchors[strings.ReplaceAll(unanchored.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return anchors
}
