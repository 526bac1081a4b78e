package intent

import (
	"cmp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLiterals bounds the literals of one pattern.
const maxLiterals = 24

// literalsOf gives sets of literals in lower case: each match of the pattern, in a text in lower case, holds at least one of every set. To look for them
// is a hundred times as fast as to try the pattern. There may be none.
func literalsOf(re *syntax.Regexp) [][]string {
	r := requirement(re)
	return appendUseful(r.sets, r.exact)
}

// required is what a match of a part of a pattern holds.
type required struct {
	exact []string   // all texts that the part can match; nil when they are too many
	sets  [][]string // each match holds one of every set
}

func requirement(re *syntax.Regexp) required {
	switch re.Op {
	case syntax.OpLiteral:
		if !slices.ContainsFunc(re.Rune, isAmbiguous) {
			return required{exact: []string{fold(string(re.Rune))}}
		}
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return required{exact: []string{""}}
	case syntax.OpCharClass:
		return required{exact: runesOf(re.Rune)}
	case syntax.OpCapture:
		return requirement(re.Sub[0])
	case syntax.OpPlus:
		return required{sets: literalsOf(re.Sub[0])}
	case syntax.OpQuest:
		if exact := requirement(re.Sub[0]).exact; exact != nil && len(exact) < maxLiterals {
			return required{exact: append([]string{""}, exact...)}
		}
	case syntax.OpConcat:
		return concatenation(re.Sub)
	case syntax.OpAlternate:
		return alternation(re.Sub)
	default: // anything, or nothing at all
	}
	return required{}
}

// isAmbiguous tells whether a character has forms that are equal for a pattern without being so in a folded text, such as the two small sigmas.
func isAmbiguous(r rune) bool {
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		if fold(string(other)) != fold(string(r)) {
			return true
		}
	}
	return false
}

// runesOf gives the characters of a small class.
func runesOf(ranges []rune) []string {
	var all []string
	for i := 0; i < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if len(all) == maxLiterals {
				return nil
			}
			if s := fold(string(r)); !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	return all
}

// concatenation multiplies the texts of neighbours as long as they are few.
func concatenation(parts []*syntax.Regexp) (whole required) {
	run := []string{""}
	isWhole := true
	for _, part := range parts {
		r := requirement(part)
		whole.sets = append(whole.sets, r.sets...)
		if r.exact != nil && len(run)*len(r.exact) <= maxLiterals {
			run = product(run, r.exact)
			continue
		}
		isWhole = false
		whole.sets = appendUseful(whole.sets, run)
		run = []string{""}
		if r.exact != nil {
			run = r.exact
		}
	}
	if isWhole {
		whole.exact = run
	} else {
		whole.sets = appendUseful(whole.sets, run)
	}
	return whole
}

func product(a, b []string) []string {
	all := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			all = append(all, x+y)
		}
	}
	return all
}

// alternation puts together what the ways need: of each the set that tells most.
func alternation(ways []*syntax.Regexp) required {
	exact, one := []string{}, []string{}
	for _, way := range ways {
		r := requirement(way)
		if exact != nil && r.exact != nil && len(exact)+len(r.exact) <= maxLiterals {
			exact = append(exact, r.exact...)
		} else {
			exact = nil
		}
		sets := appendUseful(slices.Clone(r.sets), r.exact)
		if one == nil || len(sets) == 0 {
			one = nil
			continue
		}
		one = append(one, slices.MaxFunc(sets, func(a, b []string) int {
			return cmp.Or(cmp.Compare(min(shortest(a), 4), min(shortest(b), 4)), cmp.Compare(len(b), len(a)))
		})...)
		if len(one) > maxLiterals {
			one = nil
		}
	}
	if exact != nil {
		return required{exact: exact}
	}
	return required{sets: appendUseful(nil, one)}
}

// appendUseful appends a set if it tells something: its texts have two characters at least. Those that hold another one are left out.
func appendUseful(sets [][]string, set []string) [][]string {
	if shortest(set) < 2 {
		return sets
	}
	var least []string
	for i, s := range set {
		covered := slices.ContainsFunc(set, func(other string) bool { return other != s && strings.Contains(s, other) })
		if !covered && !slices.Contains(set[:i], s) {
			least = append(least, s)
		}
	}
	return append(sets, least)
}

// shortest counts the characters of the shortest text; 0 for none.
func shortest(all []string) int {
	if len(all) == 0 {
		return 0
	}
	least := utf8.RuneCountInString(all[0])
	for _, s := range all[1:] {
		least = min(least, utf8.RuneCountInString(s))
	}
	return least
}
