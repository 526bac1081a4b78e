package compress

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"
)

const (
	sidecarLimit  = 30 * time.Second // for one text
	sidecarAnswer = 8 << 20          // bytes of an answer
)

// Sidecar asks a compressor behind HTTP, such as one that runs LLMLingua-2: POST {"text": "...", "target_tokens": 800} to its address, which
// answers 200 and {"text": "..."}. It is safe for concurrent use.
type Sidecar struct {
	url    string
	client *http.Client
}

// NewSidecar makes one for an http or https address. Proxies of the environment are not used, and redirects not followed.
func NewSidecar(url string) *Sidecar {
	return &Sidecar{url: url, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 2, IdleConnTimeout: 90 * time.Second, MaxResponseHeaderBytes: 64 << 10, ForceAttemptHTTP2: true},
		Timeout:   sidecarLimit,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

// Close ends idle connections.
func (s *Sidecar) Close() { s.client.CloseIdleConnections() }

type sidecarQuestion struct {
	Text   string `json:"text"`
	Target int    `json:"target_tokens"`
}

// Compress fails when there is no answer in time, or one that is no shorter text.
func (s *Sidecar) Compress(ctx context.Context, text string, target int) (string, error) {
	if Fits(text, target) {
		return text, nil
	}
	body, err := json.Marshal(sidecarQuestion{text, target})
	if err != nil {
		return "", fmt.Errorf("encoding the text: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("asking the compressor: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return "", fmt.Errorf("asking the compressor: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // nothing more is wanted of it
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("the compressor answered with status %d", resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, sidecarAnswer))
	if err != nil {
		return "", fmt.Errorf("reading the answer of the compressor: %w", err)
	}
	var answer struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return "", fmt.Errorf("reading the answer of the compressor: %w", err)
	}
	switch short := strings.TrimSpace(answer.Text); {
	case short == "":
		return "", errors.New("the compressor answered without a text")
	case utf8.RuneCountInString(short) >= utf8.RuneCountInString(text):
		return "", errors.New("the compressor did not make the text shorter")
	default:
		return short, nil
	}
}

// Primary is a compressor that may fail.
type Primary interface {
	Compress(ctx context.Context, text string, target int) (string, error)
}

// Fallback asks another compressor first, and Extractive when that fails or has just failed. It is safe for concurrent use.
type Fallback struct {
	primary Primary
	failed  func(ctx context.Context, err error)
	rested  atomic.Int64 // time in Unix nanoseconds until which the other one is left alone
}

// primaryRest is how long a compressor that failed is not asked, so that nobody waits for it again and again.
const primaryRest = 10 * time.Second

// NewFallback makes one that tells failed why the other one failed.
func NewFallback(p Primary, failed func(ctx context.Context, err error)) *Fallback {
	return &Fallback{primary: p, failed: failed}
}

// Compress never fails.
func (f *Fallback) Compress(ctx context.Context, text string, target int) (string, error) {
	if time.Now().UnixNano() >= f.rested.Load() {
		short, err := f.primary.Compress(ctx, text, target)
		if err == nil {
			return short, nil
		}
		if !errors.Is(ctx.Err(), context.Canceled) { // who asked is gone
			f.rested.Store(time.Now().Add(primaryRest).UnixNano())
			f.failed(ctx, err)
		}
	}
	return Extractive{}.Compress(ctx, text, target)
}
