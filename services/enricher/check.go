package enricher

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"hydrallm/services/enricher/internal/intent"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

// IntentReport says how the classifier of questions that need the web does on sentences of which the answer is known.
type IntentReport struct {
	Web, Other int           // sentences that need the web, and those that don't
	Stages     []IntentStage // in their order
	Missed     []string      // sentences that need the web and were not found
	Wrong      []string      // those that don't and were
	NoModel    error         // why there are no embeddings; nil if there are
}

// IntentStage counts the sentences that a stage decided, by whether they need the web.
type IntentStage struct {
	Name       string
	Web, Other int
}

// Precision is the share of what was found that needs the web; 1 when nothing was found.
func (r *IntentReport) Precision() float64 {
	found := r.Web - len(r.Missed)
	return share(found, found+len(r.Wrong))
}

// Recall is the share of what needs the web that was found; 1 when nothing does.
func (r *IntentReport) Recall() float64 { return share(r.Web-len(r.Missed), r.Web) }

func share(part, whole int) float64 {
	if whole == 0 {
		return 1
	}
	return float64(part) / float64(whole)
}

// CheckIntent classifies labelled sentences as an enricher with this configuration would. Each line of the text is a label, "web" or "no", a tab and a
// sentence; empty lines and those that begin with # are left out. Without keywords of a gateway that runs (nil) those of the files are used.
func CheckIntent(ctx context.Context, cfg config.Intent, keywords *query.Keywords, text io.Reader, log *slog.Logger) (*IntentReport, error) {
	sentences, err := intent.ReadSentences(text)
	if err != nil {
		return nil, fmt.Errorf("reading sentences: %w", err)
	}
	classifier, err := intent.New(cfg, log)
	if err != nil {
		return nil, err
	}
	lists := intent.KeywordFiles(cfg.KeywordsDir, log)
	if keywords != nil {
		lists = map[string][]string{"ko": keywords.Korean, "en": keywords.English}
	}
	classifier.UseKeywords(lists)
	all, noModel, err := classifier.Check(ctx, sentences)
	if err != nil {
		return nil, err
	}
	r := &IntentReport{NoModel: noModel}
	for _, name := range []string{intent.WhyKeyword, intent.WhyPattern, intent.WhyTrivial, intent.WhyEmbedding, intent.WhyNone} {
		r.Stages = append(r.Stages, IntentStage{Name: strings.TrimSuffix(name, ":")})
	}
	for _, s := range all {
		r.count(s)
	}
	return r, nil
}

func (r *IntentReport) count(s intent.Classified) {
	name, _, _ := strings.Cut(s.Why, ":")
	for i := range r.Stages {
		switch stage := &r.Stages[i]; {
		case stage.Name != name:
		case s.Sentence.Web:
			stage.Web++
		default:
			stage.Other++
		}
	}
	switch {
	case s.Sentence.Web:
		r.Web++
		if !s.Verdict.Web {
			r.Missed = append(r.Missed, s.Text)
		}
	default:
		r.Other++
		if s.Verdict.Web {
			r.Wrong = append(r.Wrong, s.Text)
		}
	}
}
