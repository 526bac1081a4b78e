package compress

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Extractive keeps the sentences and blocks of code that say most, in their order and word for word. It weighs how close each is to the topic of the whole
// (the centroid of tf-idf vectors) and what looks like a fact, a name, a decision or code, and leaves out what repeats what it has (maximal marginal
// relevance). It is deterministic and safe for concurrent use.
type Extractive struct{}

const (
	maxUnits   = 4000 // that are compared with each other; of more, those of the highest weight
	redundancy = 0.9  // weight of being like something that is kept
	same       = 0.85 // likeness from which on a unit says nothing new
	shareLimit = 4    // one unit gets at most this part of the space
)

// Compress never fails.
func (Extractive) Compress(_ context.Context, text string, target int) (string, error) {
	if Fits(text, target) {
		return text, nil
	}
	all := weigh(split(text))
	return join(choose(all, max(1, target)*charactersPerToken)), nil
}

// candidate is a unit with what decides about it.
type candidate struct {
	unit

	at     int // place in the text
	length int // characters
	vector []weighted
	weight float64
	like   float64 // the most that it is like one that is kept
	out    bool    // kept or dropped
}

// weighted is a term in a vector of length 1; vectors are sorted by term.
type weighted struct {
	term   int
	weight float64
}

func weigh(units []unit) []candidate {
	all, sum := vectors(units)
	closest := 0.0
	for i := range all {
		all[i].weight = dot(all[i].vector, sum)
		closest = max(closest, all[i].weight)
	}
	for i := range all {
		c := &all[i]
		topic := 0.0
		if closest > 0 {
			topic = weightTopic * c.weight / closest
		}
		c.weight = (topic + c.signal(len(c.vector))) * c.trust()
	}
	if len(all) > maxUnits {
		slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.weight, a.weight) })
		all = all[:maxUnits]
		slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	}
	return all
}

// vectors gives the units with their tf-idf vectors, and the sum of these by term.
func vectors(units []unit) (all []candidate, sum []float64) {
	ids, in := map[string]int{}, []int{} // in how many units a term is
	all = make([]candidate, len(units))
	for i, u := range units {
		all[i] = candidate{unit: u, at: i, length: utf8.RuneCountInString(u.text)}
		counts := map[int]int{}
		for _, term := range terms(u.text) {
			id, known := ids[term]
			if !known {
				id = len(ids)
				ids[term] = id
				in = append(in, 0)
			}
			if counts[id]++; counts[id] == 1 {
				in[id]++
			}
		}
		for id, n := range counts {
			all[i].vector = append(all[i].vector, weighted{id, 1 + math.Log(float64(n))})
		}
		slices.SortFunc(all[i].vector, func(a, b weighted) int { return cmp.Compare(a.term, b.term) })
	}
	sum = make([]float64, len(ids))
	for i := range all {
		length := 0.0
		for j := range all[i].vector {
			w := &all[i].vector[j]
			w.weight *= math.Log(1 + float64(len(units))/float64(in[w.term]))
			length += w.weight * w.weight
		}
		for j := range all[i].vector {
			all[i].vector[j].weight /= math.Sqrt(length)
			sum[all[i].vector[j].term] += all[i].vector[j].weight
		}
	}
	return all, sum
}

func dot(vector []weighted, by []float64) (sum float64) {
	for _, w := range vector {
		sum += w.weight * by[w.term]
	}
	return sum
}

// cosine is the likeness of two vectors, from 0 to 1.
func cosine(a, b []weighted) (sum float64) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].term < b[0].term:
			a = a[1:]
		case a[0].term > b[0].term:
			b = b[1:]
		default:
			sum += a[0].weight * b[0].weight
			a, b = a[1:], b[1:]
		}
	}
	return sum
}

// choose takes the best units until the space, in characters, is used, and gives them in the order of the text.
func choose(all []candidate, space int) (kept []unit) {
	most := max(space/shareLimit, min(space, passLength)-speakerSpace)
	var chosen []candidate
	speaks := map[int]bool{} // passages of which a unit is kept
	for {
		best, value := -1, math.Inf(-1)
		for i := range all {
			c := &all[i]
			if c.out || c.cost(most, speaks) > space {
				continue
			}
			if v := c.value(most); v > value {
				best, value = i, v
			}
		}
		if best < 0 || value <= 0 && len(chosen) > 0 {
			break
		}
		c := &all[best]
		space -= c.cost(most, speaks)
		c.out, speaks[c.passage] = true, true
		chosen = append(chosen, *c)
		for i := range all {
			if !all[i].out {
				all[i].like = max(all[i].like, cosine(all[i].vector, c.vector))
				all[i].out = all[i].like > same
			}
		}
	}
	slices.SortFunc(chosen, func(a, b candidate) int { return cmp.Compare(a.at, b.at) })
	for _, c := range chosen {
		c.text = c.shortened(most)
		kept = append(kept, c.unit)
	}
	return kept
}

// value is what a unit is worth for its length. Weight per character would take only scraps.
func (c *candidate) value(most int) float64 {
	v := c.weight - redundancy*c.like
	if v < 0 {
		return v
	}
	return v / math.Pow(float64(min(c.length, most)+40), 0.5)
}

// speakerSpace is what the name of a speaker takes, with what stands around it.
const speakerSpace = len("\n\n" + Assistant + ": \n")

// cost is the space that a unit takes, with what stands before it and what marks a cut.
func (c *candidate) cost(most int, speaks map[int]bool) int {
	n := c.length + 1
	if c.length > most {
		n = most + len(cutMark) + len("```") + 1
	}
	if !speaks[c.passage] {
		n += speakerSpace
	}
	return n
}

// join writes units as a text. Those of one passage are a paragraph.
func join(units []unit) string {
	var b strings.Builder
	for i, u := range units {
		switch {
		case i == 0 || units[i-1].passage != u.passage:
			if i > 0 {
				b.WriteString("\n\n")
			}
			if u.speaker != "" {
				b.WriteString(u.speaker + ": ")
				if u.code {
					b.WriteByte('\n')
				}
			}
		case u.code || units[i-1].line != u.line:
			b.WriteByte('\n')
		default:
			b.WriteByte(' ')
		}
		b.WriteString(u.text)
	}
	return b.String()
}
