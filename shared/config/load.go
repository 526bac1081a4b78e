package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile is the largest configuration file, and the largest .env file, in bytes.
const maxFile = 1 << 20

// Load reads the file that e or CONFIG_PATH names, else config.yaml or config.yml in the working directory, else the environment alone. The warnings are
// there also with an error. The error is an *InvalidError where it is about what the configuration holds.
func Load(e Environment) (*Config, []Finding, error) {
	e, err := e.WithDotenv()
	if err != nil {
		return nil, nil, err
	}
	path, named, err := e.file()
	if err != nil {
		return nil, nil, err
	}
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) && !named {
		path = strings.TrimSuffix(path, ".yaml") + ".yml"
		if data, err = readFile(path); errors.Is(err, fs.ErrNotExist) {
			return e.quickStart()
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("reading the configuration file: %w%s", err, otherEnding(path)) // names the absolute path
	}
	c, warnings, err := e.Parse(path, data)
	if other := otherEnding(path); other != "" && !named {
		warnings = append(warnings, Finding{File: path, Message: "is used" + other})
	}
	return c, warnings, err
}

// otherEnding tells, at the end of a message, that beside path there is a file that differs only in the spelling of .yaml.
func otherEnding(path string) string {
	other := strings.TrimSuffix(path, ".yaml") + ".yml"
	if base, ok := strings.CutSuffix(path, ".yml"); ok {
		other = base + ".yaml"
	}
	if _, err := os.Stat(other); err != nil {
		return ""
	}
	return ", and there is " + other
}

// file is the absolute path of the file to read. named says whether it must be there.
func (e Environment) file() (path string, named bool, err error) {
	if path = e.File; path == "" {
		path, _ = e.Lookup("CONFIG_PATH")
		path = strings.TrimSpace(path)
	}
	if named = path != ""; !named {
		path = "config.yaml"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.Dir, path)
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", named, fmt.Errorf("looking for the configuration file: %w", err)
	}
	return path, named, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxFile)
	}
	return data, err
}

// Parse reads a configuration from the text of a file. path is for messages and for Source.
func (e Environment) Parse(path string, data []byte) (*Config, []Finding, error) {
	r := &reader{findings: newFindings(path), lookup: e.Lookup, used: map[string]bool{}}
	doc := newDocument(path, e.Dir, r.findings)
	root, ok := r.parse(data)
	if !ok {
		_, err := r.result()
		return nil, nil, err
	}
	if root.Node != nil && !root.null() {
		root.fields(doc.settings())
	}
	doc.readDataDir(r)
	doc.applyServer(r)
	doc.checkUnused(r)
	return doc.finish()
}

func (doc *document) finish() (*Config, []Finding, error) {
	c := doc.resolve()
	warnings, err := doc.result()
	if err != nil {
		return nil, warnings, err
	}
	c.origins = doc.sources
	return c, warnings, nil
}

// parse gives the root of the one document in data. It has no node when there is none: an empty file means that everything has its default
// . ok is false when the text is no YAML.
func (r *reader) parse(data []byte) (root node, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var first, second yaml.Node
	switch err := dec.Decode(&first); {
	case errors.Is(err, io.EOF):
		return node{}, true
	case err != nil:
		r.syntax(data, err)
		return node{}, false
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		r.failAt(second.Line, "", "the file holds more than one YAML document")
		return node{}, false
	case !errors.Is(err, io.EOF):
		r.syntax(data, err)
		return node{}, false
	}
	if len(first.Content) == 0 {
		return node{}, true
	}
	r.inspect(first.Content[0], "", 1)
	return node{Node: first.Content[0], r: r}, true
}
