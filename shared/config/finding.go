package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is something wrong or odd in the configuration.
type Finding struct {
	Error   bool   // keeps the gateway from starting; else a warning
	File    string // "" for the environment
	Line    int    // 0 when it belongs to no line
	Path    string // of the key, such as upstreams[0].max_concurrency, or the name of an environment variable
	Message string // holds no secret
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

// maxFindings bounds the errors, and the warnings, that are shown.
const maxFindings = 200

// findings collects what is found in one file.
type findings struct {
	file     string
	lines    map[string]int    // of every key that was read, by path
	sources  map[string]Origin // of those values
	errors   findingList
	warnings findingList
}

func newFindings(file string) *findings {
	return &findings{file: file, lines: map[string]int{}, sources: map[string]Origin{}}
}

func (f *findings) fail(path, format string, args ...any) {
	f.failAt(f.line(path), path, format, args...)
}

func (f *findings) failAt(line int, path, format string, args ...any) {
	f.errors.add(Finding{Error: true, File: f.file, Line: line, Path: Conceal(path), Message: Conceal(fmt.Sprintf(format, args...))})
}

func (f *findings) warn(path, format string, args ...any) {
	f.warnAt(f.line(path), path, format, args...)
}

func (f *findings) warnAt(line int, path, format string, args ...any) {
	f.warnings.add(Finding{File: f.file, Line: line, Path: Conceal(path), Message: Conceal(fmt.Sprintf(format, args...))})
}

// given says whether the file has a value at path.
func (f *findings) given(path string) bool {
	_, ok := f.lines[path]
	return ok
}

// line is where path is in the file, or the nearest of its parents.
func (f *findings) line(path string) int {
	for path != "" {
		if line, ok := f.lines[path]; ok {
			return line
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return 0
}

// result gives the warnings, and an *InvalidError if there are errors.
func (f *findings) result() ([]Finding, error) {
	if len(f.errors.list) > 0 {
		return f.warnings.sorted(), &InvalidError{Findings: f.errors.sorted()}
	}
	return f.warnings.sorted(), nil
}

// findingList is a bounded list of findings.
type findingList struct {
	list []Finding
	more int
}

func (l *findingList) add(f Finding) {
	if len(l.list) == maxFindings {
		l.more++
		return
	}
	l.list = append(l.list, f)
}

// sorted gives the list in the order of the file.
func (l *findingList) sorted() []Finding {
	slices.SortStableFunc(l.list, func(a, b Finding) int { return cmp.Compare(a.Line, b.Line) })
	if l.more > 0 {
		last := l.list[len(l.list)-1]
		last.Path, last.Message = "", fmt.Sprintf("and %d more", l.more)
		return append(l.list, last)
	}
	return l.list
}
