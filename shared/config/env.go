package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/joho/godotenv"
)

// Environment is where a configuration comes from.
type Environment struct {
	Dir    string                      // working directory
	File   string                      // that the command line names; "" = the one that Load looks for
	Lookup func(string) (string, bool) // environment variables
	Names  func() []string             // of all variables; nil = unknown
}

// Process is the environment of this process.
func Process() (Environment, error) {
	dir, err := os.Getwd()
	if err != nil {
		return Environment{}, fmt.Errorf("finding the working directory: %w", err)
	}
	return Environment{Dir: dir, Lookup: os.LookupEnv, Names: func() []string {
		names := os.Environ()
		for i, assignment := range names {
			names[i], _, _ = strings.Cut(assignment, "=")
		}
		return names
	}}, nil
}

// WithDotenv gives the environment with the variables of the .env file in the working directory that are not set. Set to nothing is not set.
// Without such a file it is e. Load does this itself.
func (e Environment) WithDotenv() (Environment, error) {
	data, err := readFile(filepath.Join(e.Dir, ".env"))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, fmt.Errorf("reading .env: %w", err)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	vars, err := godotenv.UnmarshalBytes(data)
	if err != nil { // the parser's error may show a value
		return e, fmt.Errorf("reading %s: line %d is no NAME=value", filepath.Join(e.Dir, ".env"), brokenLine(data))
	}
	outer := e
	e.Lookup = func(name string) (string, bool) {
		v, ok := outer.Lookup(name)
		if more, there := vars[name]; there && strings.TrimSpace(v) == "" {
			return more, true
		}
		return v, ok
	}
	if outer.Names != nil {
		e.Names = func() []string { return slices.AppendSeq(outer.Names(), maps.Keys(vars)) }
	}
	return e, nil
}

// brokenLine is the number of the line of a .env file with which it becomes unreadable: the last one before which all is well.
func brokenLine(data []byte) int {
	lines := bytes.SplitAfter(data, []byte("\n"))
	for good := len(lines) - 1; good > 0; good-- {
		data = data[:len(data)-len(lines[good])]
		if _, err := godotenv.UnmarshalBytes(data); err == nil {
			return good + 1
		}
	}
	return 1
}

// variable gives the value of an environment variable, whose name may also be in lower case. One that is blank counts as not set.
func (r *reader) variable(name string) (n node, ok bool) {
	if name == "" {
		return node{}, false
	}
	for _, spelling := range []string{name, strings.ToLower(name)} {
		if v, set := r.lookup(spelling); set && strings.TrimSpace(v) != "" {
			return node{Node: scalar(v, 0), r: r, path: name, literal: true}, true
		}
	}
	return node{}, false
}

// firstVariable is variable for one that has several names.
func (r *reader) firstVariable(names []string) (n node, ok bool) {
	for _, name := range names {
		if n, ok = r.variable(name); ok {
			return n, ok
		}
	}
	return node{}, false
}

// clientKeyVariables hold the keys of clients.
func clientKeyVariables() []string {
	return []string{"CLIENT_API_KEYS", "CLIENT_API_KEY", "HYDRALLM_CLIENT_KEYS", "HYDRALLM_CLIENT_KEY"}
}

// applyServer takes what the environment may give beside a file: the keys of the gateway itself, if the file has none, and the debug switch.
func (doc *document) applyServer(r *reader) {
	s := &doc.Server
	if n, ok := r.variable("ADMIN_API_KEY"); ok {
		var key Secret
		credential(&key).read(n)
		switch {
		case s.AdminKey == "":
			s.AdminKey = key
		case s.AdminKey != key:
			doc.warn("server.admin_key", "ADMIN_API_KEY is ignored: the file has another key")
		}
	}
	if n, ok := r.variable("ADMIN_API_KEY_PREVIOUS"); ok && s.PreviousKey == "" {
		credential(&s.PreviousKey).read(n)
	}
	if n, ok := r.firstVariable(clientKeyVariables()); ok {
		var keys []Secret
		listOf(&keys, "", node.credential).read(n)
		switch {
		case !doc.given("server.client_keys"):
			s.ClientKeys = keys
		case !slices.Equal(s.ClientKeys, keys):
			doc.warn("server.client_keys", "%s is ignored: the file has other keys", n.path)
		}
	}
	if n, ok := r.variable("DEBUG"); ok {
		var debug bool
		boolean(&debug).read(n)
		s.Debug = s.Debug || debug
	}
}

// checkUnused names the variables that count in a start without a file, and do not beside one.
func (doc *document) checkUnused(r *reader) {
	var unused []string
	for _, name := range doc.variables() {
		n, set := r.variable(name)
		if set && !r.used[n.path] && !r.used[strings.ToLower(n.path)] {
			unused = append(unused, name)
		}
	}
	if len(unused) > 0 {
		doc.warnAt(1, "", "of the environment these have no effect beside a file, unless it names them as ${NAME}: %s", strings.Join(unused, ", "))
	}
}
