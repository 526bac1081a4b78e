package movein

import (
	"fmt"
	"slices"
	"strings"

	"hydrallm/shared/config"
)

// Finding is a value of the source that is not taken, or that means something else here.
type Finding struct {
	File  string
	Line  int
	Path  string
	Kind  string // what it is: text, a number, a mapping of ... It shows no value
	Why   string
	Taken bool // it is taken, but not just as it was
}

// String gives file:line: path (kind): why. It shows nothing that looks like a secret.
func (f Finding) String() string {
	return config.Conceal(fmt.Sprintf("%s:%d: %s (%s): %s", f.File, f.Line, f.Path, f.Kind, f.Why))
}

// unknown is why a value is not taken that nobody has asked for.
const unknown = "has no counterpart"

// findings lists what is not taken, and what is taken otherwise, in the order of the source. Each value without a mark is covered by one finding:
// its own, or that of the mapping or list that it is in, when nothing of that is taken.
func (v *value) findings() []Finding { return v.below(reason{}) }

// reason is why a value is not taken.
type reason struct {
	why     string
	refused bool // whatever was asked for; else nobody has asked
}

// reason is that of the value itself, or that of what it is in.
func (v *value) reason(outer reason) reason {
	switch {
	case v.why != "":
		return reason{v.why, true}
	case outer.refused || v.hint == "":
		return outer
	default:
		return reason{v.hint, false}
	}
}

func (v *value) below(outer reason) []Finding {
	r := v.reason(outer)
	var all []Finding
	for _, n := range v.notes {
		all = append(all, v.finding(n, true))
	}
	switch {
	case v.leaf():
		if !v.taken && !v.stands(r) {
			all = append(all, v.finding(r.why, false))
		}
		return all
	case v.path != "" && v.untouched(outer, r):
		return append(all, v.finding(r.why, false))
	}
	for _, k := range v.keys {
		all = append(all, v.fields[k].below(r)...)
	}
	for _, item := range v.items {
		all = append(all, item.below(r)...)
	}
	return all
}

// leaf says whether there is nothing below it.
func (v *value) leaf() bool { return len(v.keys) == 0 && len(v.items) == 0 }

// stands says whether a value that nobody asked for stands for others, by an anchor, of which one is taken.
func (v *value) stands(r reason) bool {
	return !r.refused && slices.ContainsFunc(v.copies, func(c *value) bool { return c.taken })
}

// untouched says whether nothing of it is taken, all for the one reason.
func (v *value) untouched(outer, one reason) bool {
	r := v.reason(outer)
	switch {
	case r != one || len(v.notes) > 0:
		return false
	case v.leaf():
		return !v.taken && !v.stands(r)
	}
	for _, k := range v.keys {
		if !v.fields[k].untouched(r, one) {
			return false
		}
	}
	return !slices.ContainsFunc(v.items, func(item *value) bool { return !item.untouched(r, one) })
}

func (v *value) finding(why string, taken bool) Finding {
	if why == "" {
		why = unknown
	}
	return Finding{File: v.file, Line: v.line, Path: v.path, Kind: v.kind(), Why: why, Taken: taken}
}

// shownKeys is how many keys of a mapping a finding names.
const shownKeys = 12

// kind says what the value is, without showing it.
func (v *value) kind() string {
	switch v.shape {
	case text:
		return "text"
	case number:
		return "number"
	case boolean:
		return "boolean"
	case nothing:
		return "null"
	case list:
		return fmt.Sprintf("list of %d", len(v.items))
	default:
		if len(v.keys) == 0 {
			return "empty mapping"
		}
		names := make([]string, 0, shownKeys+1)
		for i, k := range v.keys {
			if i == shownKeys {
				names = append(names, fmt.Sprintf("and %d more", len(v.keys)-i))
				break
			}
			names = append(names, strings.TrimPrefix(under(v.path, k)[len(v.path):], "."))
		}
		return "mapping of " + strings.Join(names, ", ")
	}
}
