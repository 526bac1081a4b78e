package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is something wrong or odd in the configuration. An error keeps the gateway from starting.
type Finding struct {
	Error   bool
	File    string // "" for the environment
	Line    int    // 0 when it belongs to no line
	Path    string // of the key, such as upstreams[0].max_concurrency
	Message string
}

// String gives file:line: path: message.
func (f Finding) String() string {
	var b strings.Builder
	if f.File != "" {
		b.WriteString(f.File)
		if f.Line > 0 {
			fmt.Fprintf(&b, ":%d", f.Line)
		}
		b.WriteString(": ")
	}
	if f.Path != "" {
		b.WriteString(f.Path + ": ")
	}
	b.WriteString(f.Message)
	return b.String()
}

// InvalidError holds every error of a configuration, in the order of the file.
type InvalidError struct{ Findings []Finding }

// Error lists them, a line each.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Findings))
	for i, f := range e.Findings {
		lines[i] = f.String()
	}
	return "the configuration is not valid:\n  " + strings.Join(lines, "\n  ")
}

// findings collects what is found.
type findings struct {
	file string
	list []Finding
}

func (f *findings) add(isError bool, line int, path, format string, args ...any) {
	f.list = append(f.list, Finding{Error: isError, File: f.file, Line: line, Path: path, Message: fmt.Sprintf(format, args...)})
}

// split gives the warnings, and an error if there are errors.
func (f *findings) split() ([]Finding, error) {
	slices.SortStableFunc(f.list, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	var errs, warnings []Finding
	for _, finding := range f.list {
		if finding.Error {
			errs = append(errs, finding)
		} else {
			warnings = append(warnings, finding)
		}
	}
	if len(errs) > 0 {
		return warnings, &InvalidError{Findings: errs}
	}
	return warnings, nil
}
