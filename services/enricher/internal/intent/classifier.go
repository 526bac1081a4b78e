// Package intent tells whether a text of a user needs the web. No chat model is asked: there are four stages, and the first that
// says yes counts.
//
//  1. Keywords that operators gave or that were learned.
//  2. Patterns for those who ask for a search in so many words.
//  3. Texts that say nothing: no.
//  4. Likeness to examples, by an embedding model on an Ollama server.
package intent

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"

	"hydrallm/shared/config"
)

// Verdict says whether a text needs the web, and which stage said so.
type Verdict struct {
	Web bool
	// Why is "keyword:<keyword>", "regex:<language>:<id>" or "embedding" for yes, "trivial" or "none" for no.
	Why string
}

// Reasons of verdicts that have no name of their own.
const (
	WhyKeyword   = "keyword:"
	WhyPattern   = "regex:"
	WhyEmbedding = "embedding"
	WhyTrivial   = "trivial"
	WhyNone      = "none"
)

// Classifier tells which texts need the web. It is safe for concurrent use. As a lifecycle.Service it gets its examples from the embedding model while
// it runs; without that, or before it has them, only the last stage is left out.
type Classifier struct {
	*embeddings

	patterns         *patterns
	acknowledgements map[string]bool
	keywords         atomic.Pointer[map[string]*finder] // by language
}

// New makes a classifier. What can't be used of the files of patterns is left out with a warning.
func New(cfg config.Intent, log *slog.Logger) (*Classifier, error) {
	known, err := builtInExamples()
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(builtIn, "data")
	if err != nil {
		return nil, fmt.Errorf("opening the patterns: %w", err)
	}
	if cfg.PatternsDir != "" {
		files = os.DirFS(cfg.PatternsDir)
	}
	c := &Classifier{patterns: loadPatterns(files, log), acknowledgements: map[string]bool{}, embeddings: newEmbeddings(cfg, known, log)}
	for _, lang := range known {
		for _, word := range lang.Acknowledgements {
			c.acknowledgements[word] = true
		}
	}
	return c, nil
}

// UseKeywords replaces the keywords. The lists are those of the languages, "ko" and "en".
func (c *Classifier) UseKeywords(lists map[string][]string) {
	byLanguage := map[string]*finder{}
	for lang, list := range lists {
		folded := make([]string, len(list))
		for i, keyword := range list {
			folded[i] = fold(keyword)
		}
		byLanguage[lang] = newFinder(folded)
	}
	c.keywords.Store(&byLanguage)
}

// NeedsWeb classifies a text. Of a long one only the begin and the end are looked at. The embedding model is asked last, and for a short time only.
func (c *Classifier) NeedsWeb(ctx context.Context, text string) Verdict {
	text = fold(bounded(text, lookedAt))
	if k := c.keyword(text); k != "" {
		return Verdict{true, WhyKeyword + k}
	}
	if label, found := c.patterns.find(text); found {
		return Verdict{true, label}
	}
	if c.isTrivial(text) {
		return Verdict{false, WhyTrivial}
	}
	if c.isLikeWeb(ctx, text) {
		return Verdict{true, WhyEmbedding}
	}
	return Verdict{false, WhyNone}
}

// keyword gives a keyword that the text holds: one of the language of the text, or of both when it is mixed.
func (c *Classifier) keyword(text string) string {
	lists := c.keywords.Load()
	if lists == nil {
		return ""
	}
	hangul := hasHangul(text)
	if hangul {
		if k := (*lists)["ko"].first(text); k != "" {
			return k
		}
	}
	if !hangul || hasLatin(text) {
		return (*lists)["en"].first(text)
	}
	return ""
}
