package store

import (
	"context"
	"fmt"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

// MaxRequests bounds the requests of one answer.
const MaxRequests = 1000

// callColumns are those of a query.Call.
const callColumns = `request_id, delivery, ordinal, principal, endpoint, model, provider, upstream, upstream_model, key_index, outcome, reason,
	status, prompt_tokens, completion_tokens, total_tokens, cached_tokens, cost_nanos / 1e9 AS cost, latency_ms, created_at, headers`

// savedCondition says that a request was answered after a call that failed.
const savedCondition = `status = 'success' AND EXISTS
	(SELECT 1 FROM attempts a WHERE a.request_id = usage_metrics.request_id AND a.outcome IN ('failed', 'lost'))`

// Requests gives the newest requests of those that are asked for, newest first, with their calls.
func (s *Store) Requests(ctx context.Context, q query.Requests) (page query.RequestPage, err error) {
	page.Requests = []query.Request{}
	w := requestFilter(q)
	limit := bounded(q.Limit, MaxRequests)
	newest := `SELECT id, request_id, trace_id, session_id, principal, endpoint, model, provider, upstream, upstream_model, key_index, stream, status, routing_reason,
		prompt_tokens, completion_tokens, total_tokens, latency_ms, first_token_ms, created_at
		FROM usage_metrics` + w.where() + ` ORDER BY id DESC LIMIT ?`
	if err = s.read.SelectContext(ctx, &page.Requests, s.read.Rebind(newest), append(w.args, limit+1)...); err != nil {
		return page, fmt.Errorf("reading requests: %w", err)
	}
	if page.More = len(page.Requests) > limit; page.More {
		page.Requests = page.Requests[:limit]
	}
	if err = s.addCalls(ctx, page.Requests); err != nil {
		return page, err
	}
	if n := fitting(page.Requests); n < len(page.Requests) {
		page.Requests, page.More = page.Requests[:n], true
	}
	return page, nil
}

// maxPage bounds the JSON of a page of requests, in bytes: it travels as one message, and a message has eight megabytes.
const maxPage = 5 << 20

// fitting says how many requests a page has room for, at least one.
func fitting(requests []query.Request) int {
	const usual = 768 // of a request, and of a call
	size := 0
	for i := range requests {
		size += usual
		for _, c := range requests[i].Calls {
			size += usual
			for name, value := range c.Headers {
				size += len(name) + len(value) + len(`"":"",`)
			}
		}
		if size > maxPage {
			return max(i, 1)
		}
	}
	return len(requests)
}

func requestFilter(q query.Requests) filter {
	w := pageOf(q.Page)
	if q.ID != "" {
		w.and(`request_id LIKE ? ESCAPE '!'`, escapeLike(q.ID)+"%")
	}
	w.is("trace_id", strings.ToLower(q.Trace))
	w.is("session_id", q.Session)
	if q.Model != "" {
		w.and("(model = ? OR upstream_model = ?)", q.Model, q.Model)
	}
	w.is("provider", q.Provider)
	w.is("principal", q.Client)
	if q.Reason != "" {
		w.and(`(routing_reason = ? OR status = ? OR EXISTS (SELECT 1 FROM attempts a WHERE a.request_id = usage_metrics.request_id AND a.reason = ?))`,
			q.Reason, "error: "+q.Reason, q.Reason)
	}
	switch q.Status {
	case query.RequestsAnswered, query.RequestsCancelled:
		w.is("status", q.Status)
	case query.RequestsFailed:
		w.and("status LIKE 'error%'")
	case query.RequestsSaved:
		w.and(savedCondition)
	}
	return w
}

// addCalls reads the calls of requests.
func (s *Store) addCalls(ctx context.Context, requests []query.Request) error {
	if len(requests) == 0 {
		return nil
	}
	at := make(map[string]int, len(requests))
	args := make([]any, 0, len(requests)+1)
	for i := range requests {
		at[requests[i].ID] = i
		args = append(args, requests[i].ID)
		requests[i].Calls = []query.Call{}
	}
	args = append(args, string(contract.CallNone))
	var calls []query.Call
	statement := `SELECT ` + callColumns + ` FROM attempts WHERE request_id IN ` + placeholders(1, len(requests)) +
		` AND outcome <> ? ORDER BY request_id, delivery, ordinal`
	if err := s.read.SelectContext(ctx, &calls, s.read.Rebind(statement), args...); err != nil {
		return fmt.Errorf("reading the calls of requests: %w", err)
	}
	for _, c := range calls {
		r := &requests[at[c.RequestID]]
		r.Calls = append(r.Calls, c)
	}
	return nil
}
