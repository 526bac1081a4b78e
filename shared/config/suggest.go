package config

import (
	"maps"
	"slices"
	"strings"
)

// suggestion ends a message about an unknown word with the known one that it is probably meant to be, if there is one.
func suggestion(word string, known []string) string {
	if meant := nearest(word, known); meant != "" {
		return ": did you mean " + meant + "?"
	}
	return ""
}

// maxCompared bounds the words that are looked through for a similar one.
const maxCompared = 1000

// nearest gives the known word that word is a slip of, or "".
func nearest(word string, known []string) string {
	best, meant := 1+min(2, len(word)/3), "" // one slip in three letters, and never more than two
	for _, k := range known[:min(len(known), maxCompared)] {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < best && k != word {
			best, meant = d, k
		}
	}
	return meant
}

// distance counts the letters that are added, left out, wrong or exchanged with their neighbour between two short words (optimal string
// alignment).
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return max(len(a), len(b))
	}
	var rows [3][]int // before the last, the last, this one
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[2] {
		rows[2][j] = j
	}
	for i := 1; i <= len(a); i++ {
		rows[0], rows[1], rows[2] = rows[1], rows[2], rows[0]
		rows[2][0] = i
		for j := 1; j <= len(b); j++ {
			wrong := 1
			if a[i-1] == b[j-1] {
				wrong = 0
			}
			rows[2][j] = min(rows[1][j]+1, rows[2][j-1]+1, rows[1][j-1]+wrong)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[2][j] = min(rows[2][j], rows[0][j-2]+1)
			}
		}
	}
	return rows[2][len(b)]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
