package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"hydrallm/services/enricher"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
)

type intentCmd struct {
	Check intentCheckCmd `cmd:"" help:"Tell how well questions that need the web are recognised, by a file of labelled sentences."`
}

type intentCheckCmd struct {
	File      string  `arg:"" help:"Lines of a label (web or no), a tab and a sentence."`
	Learn     bool    `help:"Have a running gateway learn keywords from the sentences that were missed."`
	URL       string  `placeholder:"URL" help:"The running gateway, whose keywords count then; without it the configured address for --learn, and the keyword files."`
	Precision float64 `default:"0.9" help:"Fail when less than this share of what was found needs the web."`
	Recall    float64 `default:"0.8" help:"Fail when less than this share of what needs the web was found."`
}

// Run prints figures, what was missed and what was wrong. It fails when the figures are below the wanted ones.
func (c intentCheckCmd) Run(a *App) error {
	settings, err := process.LoadFrom(a.Env, process.Overrides{})
	if err != nil {
		return err
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	var gateway *keywordClient
	var keywords *query.Keywords
	if c.Learn || c.URL != "" {
		url := c.URL
		if url == "" {
			url = settings.Server.URL()
		}
		if gateway, err = newKeywordClient(url, settings.Server); err != nil {
			return err
		}
		defer gateway.client.CloseIdleConnections()
		if keywords, err = gateway.keywords(a.Ctx); err != nil {
			return err
		}
	}
	log := slog.New(slog.NewTextHandler(a.ErrOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	report, err := enricher.CheckIntent(a.Ctx, settings.Web.Intent, keywords, file, log)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	printIntent(a.Out, report)
	if c.Learn {
		if err := learn(a, gateway, report.Missed); err != nil {
			return err
		}
	}
	switch {
	case report.Precision() < c.Precision:
		return fmt.Errorf("precision is %.3f, less than %g", report.Precision(), c.Precision)
	case report.Recall() < c.Recall:
		return fmt.Errorf("recall is %.3f, less than %g", report.Recall(), c.Recall)
	}
	return nil
}

func printIntent(w io.Writer, r *enricher.IntentReport) {
	fmt.Fprintf(w, "%d sentences need the web, %d do not\n", r.Web, r.Other)
	if r.NoModel != nil {
		fmt.Fprintf(w, "no embeddings: %v\n", r.NoModel)
	}
	fmt.Fprintf(w, "\n%-10s %5s %5s\n", "stage", "web", "no")
	for _, s := range r.Stages {
		fmt.Fprintf(w, "%-10s %5d %5d\n", s.Name, s.Web, s.Other)
	}
	fmt.Fprintf(w, "\nprecision %.3f, recall %.3f\n", r.Precision(), r.Recall())
	for _, s := range r.Missed {
		fmt.Fprintf(w, "missed: %s\n", s)
	}
	for _, s := range r.Wrong {
		fmt.Fprintf(w, "wrong: %s\n", s)
	}
}

func learn(a *App, gateway *keywordClient, missed []string) error {
	total := 0
	for _, sentence := range missed {
		added, err := gateway.learn(a.Ctx, sentence)
		if err != nil {
			return err
		}
		total += len(added)
		fmt.Fprintf(a.Out, "learned: %q from %s\n", added, sentence)
	}
	_, err := fmt.Fprintf(a.Out, "%d keywords added\n", total)
	return err
}

// keywordClient speaks to the admin routes of a gateway about keywords.
type keywordClient struct {
	url, key string
	client   *http.Client
}

// Limits of calls of a gateway.
const (
	gatewayLimit = time.Minute
	maxReply     = 1 << 20 // bytes
)

func newKeywordClient(url string, server config.Server) (*keywordClient, error) {
	client, err := adminClient(server)
	if err != nil {
		return nil, err
	}
	client.Timeout = gatewayLimit
	return &keywordClient{url: strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1"), key: server.AdminKey.Reveal(), client: client}, nil
}

func (k *keywordClient) keywords(ctx context.Context) (*query.Keywords, error) {
	all := new(query.Keywords)
	return all, k.call(ctx, http.MethodGet, "/v1/admin/intent/keywords", nil, all)
}

func (k *keywordClient) learn(ctx context.Context, sentence string) ([]string, error) {
	body, err := json.Marshal(query.Missed{Query: sentence})
	if err != nil {
		return nil, err
	}
	var learned query.Learned
	err = k.call(ctx, http.MethodPost, "/v1/admin/intent/keywords/learn", body, &learned)
	return learned.Added, err
}

func (k *keywordClient) call(ctx context.Context, method, path string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, k.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("X-Admin-Key", k.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := k.client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var refused struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(data, &refused) // it may be no gateway
		return fmt.Errorf("the gateway answers %s with status %d: %s", path, resp.StatusCode, refused.Error.Message)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return fmt.Errorf("reading the gateway's answer: %w", err)
	}
	return nil
}
