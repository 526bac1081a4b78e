package stream

import (
	"cmp"
	"slices"

	"hydrallm/services/dispatcher/internal/answer"
)

// Transcript puts together what the chunks of a Filter say. The zero value is ready for use.
type Transcript struct {
	head    answer.Head
	choices []*collected
}

// Take takes what one event gave. It copies what it keeps.
func (t *Transcript) Take(chunks []*answer.Chunk) {
	for _, chunk := range chunks {
		t.head.Learn(chunk)
		for i := range chunk.Choices {
			ch := &chunk.Choices[i]
			t.choice(ch.Index).add(ch)
		}
	}
}

// Whole is what was said so far as a whole answer, without usage.
func (t *Transcript) Whole() *answer.Chunk {
	whole := &answer.Chunk{}
	whole.Reset(answer.Piece)
	whole.Plain = true
	whole.ID, whole.Created, whole.Model = t.head.ID, t.head.Created, t.head.Model
	slices.SortFunc(t.choices, func(a, b *collected) int { return cmp.Compare(a.index, b.index) })
	for _, a := range t.choices {
		a.fill(whole.Choose(a.index))
	}
	return whole
}

func (t *Transcript) choice(index int) *collected {
	for _, a := range t.choices {
		if a.index == index {
			return a
		}
	}
	a := &collected{index: index}
	t.choices = append(t.choices, a)
	return a
}
