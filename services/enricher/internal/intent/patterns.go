package intent

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// languages have files of their own.
var languages = []string{"ko", "en"}

//go:embed data
var builtIn embed.FS

// Limits of files of patterns, keywords and examples.
const (
	maxFile     = 1 << 20 // bytes
	maxPatterns = 500     // in one array of a file
	maxPattern  = 10_000  // bytes
)

// pattern tells one way of asking for something.
type pattern struct {
	label string // such as "regex:en:look-up"
	re    *regexp.Regexp
	need  [][]int32 // indexes into patterns.literals: a match holds one of every set
}

// patterns are those of all languages.
type patterns struct {
	include, exclude []pattern
	literals         []string
	finder           *finder // of the literals
}

// patternFile is web_patterns.<language>.json.
type patternFile struct {
	Include []patternLine `json:"include"`
	Exclude []patternLine `json:"exclude"`
}

type patternLine struct {
	ID      string `json:"id"`
	Desc    string `json:"desc"`
	Pattern string `json:"pattern"`
}

// loadPatterns reads the files of all languages from a directory, "" for those that are built in. What can't be used is left out with a warning; a
// file that is missing is no fault.
func loadPatterns(files fs.FS, log *slog.Logger) *patterns {
	p := &patterns{}
	for _, lang := range languages {
		name := "web_patterns." + lang + ".json"
		data, err := readFile(files, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var file patternFile
		if err == nil {
			err = json.Unmarshal(data, &file)
		}
		if err != nil {
			log.Warn("patterns can't be used", slog.String("file", name), slog.Any("error", err))
			continue
		}
		add := func(list *[]pattern, lines []patternLine) {
			for i, line := range lines {
				one, err := p.compile(lang, line)
				if err == nil && i >= maxPatterns {
					err = fmt.Errorf("there are more than %d", maxPatterns)
				}
				if err != nil {
					log.Warn("a pattern can't be used", slog.String("file", name), slog.String("id", line.ID), slog.Any("error", err))
					continue
				}
				*list = append(*list, one)
			}
		}
		add(&p.include, file.Include)
		add(&p.exclude, file.Exclude)
	}
	p.finder = newFinder(p.literals)
	return p
}

// readFile reads a file that somebody wrote by hand: with a mark of its encoding at the begin, or not.
func readFile(files fs.FS, name string) ([]byte, error) {
	f, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("it is larger than %d bytes", maxFile)
	}
	return []byte(strings.TrimPrefix(string(data), "\ufeff")), nil
}

func (p *patterns) compile(lang string, line patternLine) (pattern, error) {
	switch {
	case line.Pattern == "":
		return pattern{}, errors.New("it is empty")
	case len(line.Pattern) > maxPattern:
		return pattern{}, fmt.Errorf("it is longer than %d bytes", maxPattern)
	}
	source := "(?i)" + line.Pattern
	re, err := regexp.Compile(source)
	if err != nil {
		return pattern{}, err
	}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return pattern{}, err
	}
	one := pattern{label: "regex:" + lang + ":" + line.ID, re: re}
	for _, set := range literalsOf(tree.Simplify()) {
		numbers := make([]int32, len(set))
		for i, l := range set {
			numbers[i] = p.number(l)
		}
		one.need = append(one.need, numbers)
	}
	return one, nil
}

// number gives the index of a literal.
func (p *patterns) number(literal string) int32 {
	i := slices.Index(p.literals, literal)
	if i < 0 {
		i = len(p.literals)
		p.literals = append(p.literals, literal)
	}
	return int32(i)
}

// find gives the label of a pattern that includes the text, if none excludes it. The text is folded; patterns see a sentence at a time.
func (p *patterns) find(text string) (label string, found bool) {
	if held := p.held(text); !slices.ContainsFunc(p.include, held.allow) {
		return "", false
	}
	if label = p.first(p.include, text); label == "" {
		return "", false
	}
	return label, p.first(p.exclude, text) == ""
}

// first gives the label of the first pattern that matches a sentence.
func (p *patterns) first(list []pattern, text string) (label string) {
	sentences(text, func(sentence string) bool {
		held := p.held(sentence)
		for i := range list {
			if held.allow(list[i]) && list[i].re.MatchString(sentence) {
				label = list[i].label
				return false
			}
		}
		return true
	})
	return label
}

// held is a set of literals that a text holds, as bits.
type held []uint64

func (p *patterns) held(text string) held {
	h := make(held, (len(p.literals)+63)/64)
	p.finder.each(text, func(i int32) bool {
		h[i/64] |= 1 << (i % 64)
		return true
	})
	return h
}

// allow tells whether a pattern may match.
func (h held) allow(one pattern) bool {
	for _, set := range one.need {
		if !slices.ContainsFunc(set, func(i int32) bool { return h[i/64]&(1<<(i%64)) != 0 }) {
			return false
		}
	}
	return true
}
