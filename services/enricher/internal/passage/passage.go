// Package passage chooses what is kept of pages: what answers a question, not what comes first.
package passage

import (
	"slices"
	"strings"
	"unicode/utf8"

	"hydrallm/services/enricher/internal/page"
)

const (
	gap    = "…" // stands for what was left out
	enough = 50  // parts in a row that do not fit into what is left of a budget: the rest will not either
)

// Pick gives one text per document, in their order, with at most maxRunes characters (code points) together, marks of what was left out
// included. A document that fits is kept as it is. Of a longer one those passages are kept, in their order, that have to do with the query;
// if it says nothing but what to do ("summarise this"), or nothing of it is found, the beginning and the begin of each section. Each
// document has the same share, and what one does not need goes to the others. Title and date are no part of the texts; words of the title
// count for all of its document. The text of an empty document is "".
func Pick(docs []page.Document, query string, maxRunes int) []string {
	texts := make([]string, len(docs))
	sizes := make([]int, len(docs))
	for i := range docs {
		texts[i] = strings.TrimSpace(docs[i].Text)
		sizes[i] = utf8.RuneCountInString(texts[i])
	}
	budgets := share(sizes, max(maxRunes, 0))
	var long []*source
	for i, d := range docs {
		if sizes[i] > budgets[i] {
			long = append(long, &source{at: i, parts: split(texts[i]), title: d.Title})
		}
	}
	if len(long) == 0 {
		return texts
	}
	q := readQuery(query)
	q.weigh(long)
	for _, s := range long {
		texts[s.at] = s.keep(s.order(budgets[s.at]), budgets[s.at])
	}
	return texts
}

// share divides a budget: equal shares, and what somebody does not need is divided among those who need more.
func share(needs []int, budget int) []int {
	order := make([]int, len(needs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return needs[a] - needs[b] })
	got := make([]int, len(needs))
	for n, i := range order {
		got[i] = min(needs[i], budget/(len(order)-n))
		budget -= got[i]
	}
	return got
}

// source is a document of which not all can be kept.
type source struct {
	at     int // among the documents
	title  string
	parts  []part
	scores []float64 // of parts, by what the query asks; all 0 if it asks nothing that is there
}

// keep gives the text of the best parts, best first in order, that fit into budget.
func (s *source) keep(order []int, budget int) string {
	kept := make([]bool, len(s.parts))
	some, failed := false, 0
	for _, i := range order {
		if kept[i] {
			continue
		}
		added := s.add(kept, i)
		if s.size(kept) <= budget {
			some, failed = true, 0
			continue
		}
		for _, j := range added {
			kept[j] = false
		}
		if failed++; failed == enough {
			break
		}
	}
	if !some && len(order) > 0 {
		return cut(s.parts[order[0]].text, budget)
	}
	return s.render(kept)
}

// add marks a part and what it is not understood without, and gives what was not marked before.
func (s *source) add(kept []bool, i int) (added []int) {
	for _, j := range append([]int{i}, s.parts[i].needs...) {
		if !kept[j] {
			kept[j] = true
			added = append(added, j)
		}
	}
	return added
}

// walk calls emit with the pieces of the text of the kept parts.
func (s *source) walk(kept []bool, emit func(text string, runes int)) {
	missing, some := false, false
	for i := range s.parts {
		p := &s.parts[i]
		if !kept[i] {
			missing = true
			continue
		}
		switch {
		case missing && some && p.join == " ":
			emit(" "+gap+" ", 3)
		case missing && some:
			emit("\n"+gap+"\n", 3)
		case missing:
			emit(gap+"\n", 2)
		case some:
			emit(p.join, len(p.join))
		}
		emit(p.text, p.runes)
		missing, some = false, true
	}
	if missing && some {
		emit("\n"+gap, 2)
	}
}

func (s *source) size(kept []bool) (n int) {
	s.walk(kept, func(_ string, runes int) { n += runes })
	return n
}

func (s *source) render(kept []bool) string {
	var b strings.Builder
	s.walk(kept, func(text string, _ int) { b.WriteString(text) })
	return b.String()
}

// cut gives the first n characters of a text, the mark of what is missing included.
func cut(text string, n int) string {
	runes := []rune(text)
	switch {
	case len(runes) <= n:
		return text
	case n < 1:
		return ""
	}
	return strings.TrimSpace(string(runes[:n-1])) + gap
}
