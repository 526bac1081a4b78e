package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/services/enricher/internal/extract"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/page"
	"hydrallm/services/enricher/internal/passage"
	"hydrallm/services/enricher/internal/search"
)

const (
	minChars = 200
	maxChars = 50_000
	maxQuery = 2000 // characters; engines get 256 of them, the ranking of passages all
	maxURL   = 8192
)

// Tools is what the server offers.
type Tools struct {
	Web      enrich.Web    // judges addresses itself: they come from anybody
	MaxChars int           // of an answer that does not ask for another size
	Deadline time.Duration // for one call

	log *slog.Logger
}

type searchInput struct {
	Query    string `json:"query" jsonschema:"What to look for, as a question or as words"`
	MaxChars int    `json:"max_chars,omitempty" jsonschema:"The most characters of text in the answer"`
}

type fetchInput struct {
	URL      string `json:"url" jsonschema:"The address of the page, http or https"`
	MaxChars int    `json:"max_chars,omitempty" jsonschema:"The most characters of text in the answer"`
}

func (t *Tools) register(s *mcp.Server) error {
	open := true
	about := func(title string) *mcp.ToolAnnotations {
		return &mcp.ToolAnnotations{Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &open}
	}
	searchSchema, err := schema[searchInput](t.MaxChars)
	if err != nil {
		return err
	}
	fetchSchema, err := schema[fetchInput](t.MaxChars)
	if err != nil {
		return err
	}
	mcp.AddTool(s, &mcp.Tool{
		Name: "search_and_fetch", InputSchema: searchSchema, Annotations: about("Search the web"),
		Description: "Searches the web, reads the first pages found, and gives the passages that answer the query, with titles, addresses and dates of the pages.",
	}, t.searchAndFetch)
	mcp.AddTool(s, &mcp.Tool{
		Name: "fetch", InputSchema: fetchSchema, Annotations: about("Read a web page"),
		Description: "Reads a page of the web or a PDF and gives its text as Markdown, with title and date. Of a long page the beginning and the begin of each section are given.",
	}, t.fetch)
	return nil
}

// schema describes the input of a tool.
func schema[In any](usual int) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("describing a tool: %w", err)
	}
	low, high, one := float64(minChars), float64(maxChars), 1
	size := s.Properties["max_chars"]
	size.Minimum, size.Maximum, size.Default = &low, &high, fmt.Appendf(nil, "%d", min(max(usual, minChars), maxChars))
	for name, limit := range map[string]int{"query": maxQuery, "url": maxURL} {
		if p := s.Properties[name]; p != nil {
			p.MinLength, p.MaxLength = &one, &limit
		}
	}
	return s, nil
}

func (t *Tools) searchAndFetch(ctx context.Context, _ *mcp.CallToolRequest, in searchInput) (*mcp.CallToolResult, any, error) {
	ctx, cancel := work(ctx, t.Deadline)
	defer cancel()
	found, err := t.Web.Search(ctx, in.Query)
	switch {
	case errors.Is(err, search.ErrEmpty):
		return nil, nil, err
	case err != nil:
		t.log.WarnContext(ctx, "a search over MCP failed", slog.Any("error", err))
		return nil, nil, errors.New("no search engine answered")
	case found.Results == 0:
		return say("Nothing was found."), nil, nil
	}
	docs := t.readAll(ctx, found, in.Query)
	if len(docs) == 0 {
		return nil, nil, errors.New("pages were found, and none of them could be read")
	}
	return say(t.text(docs, in.Query, in.MaxChars)), nil, nil
}

// readAll reads the pages that were found, at the same time, and gives those that could be read, in their order.
func (t *Tools) readAll(ctx context.Context, found enrich.Findings, query string) []page.Document {
	docs := make([]page.Document, len(found.URLs))
	var reading sync.WaitGroup
	for i, url := range found.URLs {
		reading.Go(func() {
			defer func() {
				if p := recover(); p != nil { // a page that is more than its parser can bear costs nothing but itself
					t.log.ErrorContext(ctx, "reading a page panicked", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
				}
			}()
			if p, err := t.Web.Fetch(ctx, url, query); err == nil {
				docs[i] = p.Document
			}
		})
	}
	reading.Wait()
	for _, p := range found.Pages {
		docs = append(docs, p.Document)
	}
	return slices.DeleteFunc(docs, func(d page.Document) bool { return d.Empty() })
}

func (t *Tools) fetch(ctx context.Context, _ *mcp.CallToolRequest, in fetchInput) (*mcp.CallToolResult, any, error) {
	ctx, cancel := work(ctx, t.Deadline)
	defer cancel()
	read, err := t.Web.Fetch(ctx, in.URL, "")
	if failure, ok := errors.AsType[*fetch.Error](err); ok {
		return nil, nil, errors.New(failure.Error()) // what it wraps tells of the network
	}
	switch {
	case errors.Is(err, extract.ErrNoText), err == nil && read.Empty():
		return nil, nil, extract.ErrNoText
	case err != nil:
		t.log.WarnContext(ctx, "reading a page over MCP failed", slog.Any("error", err))
		return nil, nil, errors.New("the page could not be read")
	}
	return say(t.text([]page.Document{read.Document}, "", in.MaxChars)), nil, nil
}

func say(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// text writes what is kept of pages, with at most n characters, 0 for the usual number.
func (t *Tools) text(docs []page.Document, query string, n int) string {
	if n == 0 {
		n = min(max(t.MaxChars, minChars), maxChars)
	}
	heads := make([]string, len(docs))
	rest := n
	for i, d := range docs {
		heads[i] = head(d, n/len(docs)/2)
		rest -= utf8.RuneCountInString(heads[i]) + len("\n\n")
	}
	parts := passage.Pick(docs, query, max(rest, 0))
	for i := range parts {
		parts[i] = strings.TrimSpace(heads[i] + parts[i])
	}
	return strings.Join(parts, "\n\n")
}

// head is what stands before the text of a page, in at most n characters.
func head(d page.Document, n int) string {
	title := strings.Join(strings.Fields(d.Title), " ")
	if title == "" {
		title = "Untitled"
	}
	lines := "# " + title + "\n" + "URL: " + d.URL + "\n"
	if !d.Published.IsZero() {
		lines += "Date: " + d.Published.Format(time.DateOnly) + "\n"
	}
	if utf8.RuneCountInString(lines) > n { // an address is whole or not there
		runes := []rune("# " + title)
		return string(runes[:min(len(runes), max(n-2, 0))]) + "\n\n"
	}
	return lines + "\n"
}
