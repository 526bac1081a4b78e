package intent

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
)

// examples is examples.<language>.json: what is known of a language.
type examples struct {
	Acknowledgements []string `json:"acknowledgements"` // words that only agree or go on
	Web              []string `json:"web"`              // questions that need the web
	Other            []string `json:"other"`            // those that don't
	Signals          []string `json:"signals"`          // words beside which there is something to learn
	Fillers          []string `json:"fillers"`          // words that tell nothing beside one
}

// builtInExamples reads those of all languages. They are part of the program, so that an error is one of it.
func builtInExamples() (all map[string]examples, err error) {
	all = map[string]examples{}
	for _, lang := range languages {
		data, err := builtIn.ReadFile("data/examples." + lang + ".json")
		if err != nil {
			return nil, err
		}
		var one examples
		if err := json.Unmarshal(data, &one); err != nil {
			return nil, fmt.Errorf("reading the examples of %s: %w", lang, err)
		}
		all[lang] = one
	}
	return all, nil
}

// Less than this says nothing.
const (
	fewestWords   = 2
	fewestLetters = 4
)

// isTrivial tells whether a folded text says nothing that could need the web: it has no address, and is very short or only agrees.
func (c *Classifier) isTrivial(text string) bool {
	if strings.Contains(text, "http://") || strings.Contains(text, "https://") {
		return false
	}
	words, letters, onlyAgrees := 0, 0, true
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool {
		return r != '\'' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
	}) {
		words++
		onlyAgrees = onlyAgrees && c.acknowledgements[word]
		for _, r := range word {
			if unicode.IsLetter(r) {
				letters++
			}
		}
		if words >= fewestWords && letters >= fewestLetters && !onlyAgrees {
			return false
		}
	}
	return true
}

// isNoWord tells whether a character is no part of a word.
func isNoWord(r rune) bool {
	return r != '\'' && !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r)
}
