package intent

import (
	"strings"
	"unicode/utf8"
)

// finder finds many literals in a text at once. At each place it looks only at those that begin with the two characters there, so that their number
// hardly counts.
type finder struct {
	literals []string
	starts   [1 << 12][]int32 // indexes into literals by the hash of their first two characters
}

// newFinder makes one for folded literals of two characters at least; it knows them by their index.
func newFinder(literals []string) *finder {
	f := &finder{literals: literals}
	for i, l := range literals {
		first, n := utf8.DecodeRuneInString(l)
		second, size := utf8.DecodeRuneInString(l[n:])
		if size > 0 {
			h := hash(first, second)
			f.starts[h] = append(f.starts[h], int32(i))
		}
	}
	return f
}

func hash(first, second rune) uint32 {
	return (uint32(first)*0x9E3779B1 ^ uint32(second)*0x85EBCA6B) >> 20
}

// each calls fn with the index of each literal that a folded text holds, once or more often, until fn gives false.
func (f *finder) each(text string, fn func(i int32) bool) {
	before, at := rune(-1), 0 // the character before the one at i, and where it begins
	for i, r := range text {
		for _, candidate := range f.starts[hash(before, r)] {
			if strings.HasPrefix(text[at:], f.literals[candidate]) && !fn(candidate) {
				return
			}
		}
		before, at = r, i
	}
}

// first gives a literal that a folded text holds, "" for none.
func (f *finder) first(text string) (found string) {
	if f == nil || len(f.literals) == 0 {
		return ""
	}
	f.each(text, func(i int32) bool {
		found = f.literals[i]
		return false
	})
	return found
}
