package intent

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Sentence is one of which somebody says whether it needs the web.
type Sentence struct {
	Text string
	Web  bool
}

// maxLine bounds a sentence in a file, in bytes.
const maxLine = 64 << 10

// ReadSentences reads lines of a label, "web" or "no", a tab and a sentence. Empty lines and those that begin with # are left out.
func ReadSentences(r io.Reader) (all []Sentence, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		line := strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff"))
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		label, text, _ := strings.Cut(line, "\t")
		text = strings.TrimSpace(text)
		if label != "web" && label != "no" || text == "" {
			return nil, fmt.Errorf("line %d is not a label (web or no), a tab and a sentence", n)
		}
		all = append(all, Sentence{Text: text, Web: label == "web"})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", n+1, err)
	}
	if all == nil {
		return nil, errors.New("it has no sentences")
	}
	return all, nil
}

// Classified is a sentence and what became of it.
type Classified struct {
	Sentence
	Verdict
}

// Check classifies sentences, with the embedding model if it can be had; unready is why it can't.
func (c *Classifier) Check(ctx context.Context, all []Sentence) (done []Classified, unready, err error) {
	unready = c.prepare(ctx)
	defer c.ollama.client.CloseIdleConnections()
	for _, s := range all {
		done = append(done, Classified{s, c.NeedsWeb(ctx, s.Text)})
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
	}
	return done, unready, nil
}
