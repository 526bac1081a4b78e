package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/joho/godotenv"
	"go.yaml.in/yaml/v3"
)

// Environment is where a configuration comes from.
type Environment struct {
	Dir    string                      // working directory
	Lookup func(string) (string, bool) // environment variables
}

// Process is the environment of this process, with the .env file of its working directory for what is not set.
func Process() (Environment, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Environment{}, fmt.Errorf("finding the working directory: %w", err)
	}
	file, err := godotenv.Read(filepath.Join(dir, ".env"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Environment{}, errors.New("reading .env: it is not a list of NAME=value lines") // the parser's error may show a value
	}
	return Environment{Dir: dir, Lookup: func(name string) (string, bool) {
		if v, ok := os.LookupEnv(name); ok {
			return v, true
		}
		v, ok := file[name]
		return v, ok
	}}, nil
}

// maxFile is the largest configuration file, in bytes.
const maxFile = 4 << 20

// Load reads the file that CONFIG_PATH names, else config.yaml in the working directory, else the environment alone. The warnings
// are also there when the error, an *InvalidError, says why the configuration can't be used.
func Load(e Environment) (*Config, []Finding, error) {
	path, err := e.path()
	if err != nil {
		return nil, nil, err
	}
	if path == "" {
		return e.loadEnvironment()
	}
	data, err := readFile(path)
	if err != nil {
		return nil, nil, err
	}
	return e.Parse(path, data)
}

// path is the file to read, or "" when there is none.
func (e Environment) path() (string, error) {
	if named, ok := e.Lookup("CONFIG_PATH"); ok && named != "" {
		if !filepath.IsAbs(named) {
			named = filepath.Join(e.Dir, named)
		}
		return named, nil
	}
	path := filepath.Join(e.Dir, "config.yaml")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", fmt.Errorf("looking for the configuration file: %w", err)
	}
	return path, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the configuration file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading the configuration file %s: it is larger than %d bytes", path, maxFile)
	}
	return data, nil
}

// Parse reads a configuration from the text of a file; path is for messages.
func (e Environment) Parse(path string, data []byte) (*Config, []Finding, error) {
	d := &decoder{findings: &findings{file: path}, lookup: e.Lookup}
	doc := &document{Config: *defaults()}
	doc.Source = path
	if root, ok := d.parse(data); ok {
		doc.read(root)
	}
	e.applyServer(d.findings, &doc.Server)
	c := doc.resolve(d.findings)
	warnings, err := d.split()
	if err != nil {
		return nil, warnings, err
	}
	return c, warnings, nil
}

// parse gives the root of the document. ok is false when there is nothing to read.
func (d *decoder) parse(data []byte) (root node, ok bool) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var y yaml.Node
	err := dec.Decode(&y)
	if errors.Is(err, io.EOF) {
		return node{}, false // an empty file is a configuration of defaults
	}
	if err != nil {
		// The library's text holds the line: "yaml: line 4: did not find expected ',' or ']'".
		d.add(true, 0, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return node{}, false
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		d.add(true, 0, "", "the file holds more than one document")
		return node{}, false
	}
	if len(y.Content) == 0 {
		return node{}, false
	}
	return node{Node: y.Content[0], d: d}, true
}
