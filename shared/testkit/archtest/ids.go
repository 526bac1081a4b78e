package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	// idPattern is what an id looks like: R-121, SSE-04, HDR-03c.
	idPattern = regexp.MustCompile(`\b([A-Z]{1,8})-[0-9]{2,3}[a-z]?\b`)
	// definition begins a line of a document that says what an id means: an item of a list or a row of a table.
	definition = regexp.MustCompile(`(?m)^(?:- \*\*|\| )(` + idPattern.String() + `)(?:\*\*| \[| \|)`)
)

// foreign are names of standards that look like ids.
var foreign = []string{"AES", "SHA", "UTF"}

// IDFaults lists what is wrong with the ids that sources and documents below root cite: one that no document defines, one that is defined
// twice. Only documents in docs define ids.
func IDFaults(root string) ([]string, error) {
	texts, err := readTexts(root)
	if err != nil {
		return nil, err
	}
	defined := map[string]string{}
	var found []string
	for _, t := range texts {
		if !within(t.path, "docs") {
			continue
		}
		for _, m := range definition.FindAllStringSubmatchIndex(t.content, -1) {
			id, place := t.content[m[2]:m[3]], t.place(m[2])
			if before, twice := defined[id]; twice {
				found = append(found, fmt.Sprintf("%s: %s is defined in %s already", place, id, before))
				continue
			}
			defined[id] = place
		}
	}
	for _, t := range texts {
		for _, m := range idPattern.FindAllStringSubmatchIndex(t.content, -1) {
			id := t.content[m[0]:m[1]]
			if _, ok := defined[id]; !ok && !slices.Contains(foreign, t.content[m[2]:m[3]]) {
				found = append(found, fmt.Sprintf("%s: no document defines %s", t.place(m[0]), id))
			}
		}
	}
	return found, nil
}

// text is a file that may cite ids.
type text struct {
	path    string // slash-separated, from the root of the repository
	content string
}

// place names the line of an offset.
func (t text) place(offset int) string {
	return fmt.Sprintf("%s:%d", t.path, 1+strings.Count(t.content[:offset], "\n"))
}

// readTexts reads every Go file and document below root, in the order of their paths, but for test data, hidden directories, and dist, which make writes.
func readTexts(root string) ([]text, error) {
	var texts []text
	files := os.DirFS(root)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (entry.Name() == "testdata" || name == "dist" || strings.HasPrefix(entry.Name(), ".")):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" && path.Ext(name) != ".md":
			return nil
		}
		content, err := fs.ReadFile(files, name)
		texts = append(texts, text{name, string(content)})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("reading sources and documents: %w", err)
	}
	return texts, nil
}
