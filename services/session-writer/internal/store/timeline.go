package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"hydrallm/shared/query"
)

// Bounds of a timeline.
const (
	MaxSpan   = 31 * 24 * time.Hour
	MaxPoints = 400
	maxGroups = 200_000 // that are read
	maxSummed = 300_000 // requests, the newest ones: a sum of more would take many seconds
	maxNamed  = 50      // models, providers or clients of one answer
)

// firstTokenBins are upper bounds of classes of times to the first token, in milliseconds. One is at most half larger than the one before.
var firstTokenBins = [...]int64{
	5, 7, 10, 15, 20, 30, 40, 55, 75, 100, 130, 170, 220, 280, 350, 440, 550, 700, 900, 1150, 1500, 2000, 2600, 3400, 4500, 6000, 8000, 11000, 15000, 20000,
	30000, 45000, 60000, 90000, 120000, 180000, 300000,
}

// group is the sum of requests that are alike.
type group struct {
	Bucket     int64    `db:"bucket"` // number of the step from the begin of the time before
	Model      string   `db:"model"`
	Provider   string   `db:"provider"`
	Principal  string   `db:"principal"`
	State      string   `db:"state"`
	Bin        int      `db:"bin"` // of the time to the first token; -1 = none
	Requests   int64    `db:"requests"`
	Prompt     int64    `db:"prompt"`
	Completion int64    `db:"completion"`
	Cost       *float64 `db:"cost"`
}

// Timeline sums the requests of a time and of the one before. The time is cut to MaxSpan, and steps are so long that there are no more than
// MaxPoints.
func (s *Store) Timeline(ctx context.Context, q query.Timeline) (query.Sums, error) {
	q = plausibleTimeline(q)
	span := q.To.Sub(q.From)
	w := filter{}
	w.and("created_at >= ?", Time{q.From.Add(-span)})
	w.and("created_at < ?", Time{q.To})
	if q.Model != "" {
		w.and("(model = ? OR upstream_model = ?)", q.Model, q.Model)
	}
	w.is("principal", q.Client)
	oldest, cut, err := s.oldestSummed(ctx, Time{q.From.Add(-span)}, maxSummed)
	if err != nil {
		return query.Sums{}, err
	}
	w.and("id > ?", oldest)
	args := append([]any{q.From.Add(-span).UnixMilli(), q.Step.Milliseconds()}, append(w.args, maxGroups+1)...)
	statement := `SELECT (` + s.millis("created_at") + ` - ?) / ? AS bucket, CASE WHEN upstream_model = '' THEN model ELSE upstream_model END AS model,
		provider, principal, CASE WHEN status LIKE 'error%' THEN 'failed' WHEN ` + savedCondition + ` THEN 'failover' ELSE status END AS state,
		` + binColumn + ` AS bin, COUNT(*) AS requests, CAST(SUM(prompt_tokens) AS BIGINT) AS prompt, CAST(SUM(completion_tokens) AS BIGINT) AS completion,
		SUM((SELECT SUM(a.cost_nanos) FROM attempts a WHERE a.request_id = usage_metrics.request_id)) / 1e9 AS cost
		FROM usage_metrics` + w.where() + ` GROUP BY 1, 2, 3, 4, 5, 6 LIMIT ?`
	rows, err := s.read.QueryxContext(ctx, s.read.Rebind(statement), args...)
	if err != nil {
		return query.Sums{}, fmt.Errorf("summing requests: %w", err)
	}
	defer rows.Close() //nolint:errcheck // what went wrong is told by Err
	t := newTotals(q)
	n := 0
	for rows.Next() {
		var g group
		if err := rows.StructScan(&g); err != nil {
			return query.Sums{}, fmt.Errorf("reading sums of requests: %w", err)
		}
		if n++; n <= maxGroups {
			t.add(&g)
		}
	}
	if err := rows.Err(); err != nil {
		return query.Sums{}, fmt.Errorf("summing requests: %w", err)
	}
	sums := t.sums(q)
	sums.Partial = cut || n > maxGroups
	return sums, nil
}

// oldestSummed gives the number behind which the newest requests are, at most so many, and says whether there are others since a time.
func (s *Store) oldestSummed(ctx context.Context, since Time, most int64) (id int64, others bool, err error) {
	if err := s.read.GetContext(ctx, &id, `SELECT COALESCE(MAX(id), 0) FROM usage_metrics`); err != nil {
		return 0, false, fmt.Errorf("looking for the newest request: %w", err)
	}
	if id -= most; id <= 0 {
		return 0, false, nil
	}
	const older = `SELECT EXISTS (SELECT 1 FROM usage_metrics WHERE created_at >= ? AND id <= ?)`
	if err := s.read.GetContext(ctx, &others, s.read.Rebind(older), since, id); err != nil {
		return 0, false, fmt.Errorf("looking for older requests: %w", err)
	}
	return id, others, nil
}

// plausibleTimeline gives a time that can be summed. Steps are whole milliseconds, and so is what they make.
func plausibleTimeline(q query.Timeline) query.Timeline {
	if q.To.IsZero() {
		q.To = time.Now()
	}
	q.To = q.To.Truncate(time.Millisecond)
	if q.From = q.From.Truncate(time.Millisecond); !q.From.Before(q.To) {
		q.From = q.To.Add(-time.Hour)
	}
	if q.To.Sub(q.From) > MaxSpan {
		q.From = q.To.Add(-MaxSpan)
	}
	span := q.To.Sub(q.From)
	q.Step = min(max(q.Step.Truncate(time.Millisecond), time.Millisecond, (span/MaxPoints).Truncate(time.Millisecond)+time.Millisecond), span)
	if part := span % q.Step; part > 0 {
		span += q.Step - part // whole steps
	}
	q.From = q.To.Add(-span)
	return q
}

// millis is an expression for the milliseconds of Unix time of a column.
func (s *Store) millis(column string) string {
	if s.read.DriverName() == postgresDriver {
		return "CAST(EXTRACT(EPOCH FROM " + column + ") * 1000 AS BIGINT)"
	}
	return "CAST(ROUND((JULIANDAY(" + column + ") - 2440587.5) * 86400000) AS INTEGER)"
}

// binColumn gives the class of the time to the first token of an answer.
var binColumn = func() string {
	var b strings.Builder
	b.WriteString("CASE WHEN first_token_ms <= 0 OR status <> 'success' THEN -1")
	for i, most := range firstTokenBins {
		fmt.Fprintf(&b, " WHEN first_token_ms <= %d THEN %d", most, i)
	}
	fmt.Fprintf(&b, " ELSE %d END", len(firstTokenBins))
	return b.String()
}()

// tally is a sum that is being made.
type tally struct {
	query.Sum

	bins [len(firstTokenBins) + 1]int64
}

func (t *tally) add(g *group) {
	t.Requests += g.Requests
	t.Prompt += g.Prompt
	t.Completion += g.Completion
	switch g.State {
	case query.RequestsFailed:
		t.Failed += g.Requests
	case query.RequestsCancelled:
		t.Cancelled += g.Requests
	case query.RequestsSaved:
		t.Saved += g.Requests
	}
	if g.Cost != nil {
		if t.Cost == nil {
			t.Cost = new(float64)
		}
		*t.Cost += *g.Cost
	}
	if g.Bin >= 0 {
		t.bins[g.Bin] += g.Requests
	}
}

func (t *tally) sum() query.Sum {
	t.MedianMS, t.P95MS = t.percentile(0.5), t.percentile(0.95)
	return t.Sum
}

// percentile estimates a percentile of the times to the first token: within a class they are taken to be spread evenly.
func (t *tally) percentile(p float64) int64 {
	total := int64(0)
	for _, n := range t.bins {
		total += n
	}
	rank, below := p*float64(total), 0.0
	for i, n := range t.bins {
		if n == 0 {
			continue
		}
		if below+float64(n) < rank {
			below += float64(n)
			continue
		}
		if i == len(firstTokenBins) {
			return firstTokenBins[i-1]
		}
		low := int64(0)
		if i > 0 {
			low = firstTokenBins[i-1]
		}
		return low + int64(float64(firstTokenBins[i]-low)*(rank-below)/float64(n))
	}
	return 0
}

// totals are the sums of a timeline that are being made.
type totals struct {
	steps                      int64
	total, before              tally
	points                     []tally
	models, providers, clients map[string]*tally
}

func newTotals(q query.Timeline) *totals {
	steps := int64(q.To.Sub(q.From) / q.Step)
	return &totals{steps: steps, points: make([]tally, steps), models: map[string]*tally{}, providers: map[string]*tally{}, clients: map[string]*tally{}}
}

func (t *totals) add(g *group) {
	if g.Bucket < t.steps {
		t.before.add(g)
		return
	}
	t.total.add(g)
	t.points[min(g.Bucket-t.steps, t.steps-1)].add(g)
	for _, by := range []struct {
		name string
		sums map[string]*tally
	}{{g.Model, t.models}, {g.Provider, t.providers}, {g.Principal, t.clients}} {
		if by.sums[by.name] == nil {
			by.sums[by.name] = &tally{}
		}
		by.sums[by.name].add(g)
	}
}

func (t *totals) sums(q query.Timeline) query.Sums {
	sums := query.Sums{
		From: query.Time{Time: q.From}, To: query.Time{Time: q.To}, StepMS: q.Step.Milliseconds(), Total: t.total.sum(), Before: t.before.sum(),
		Points: make([]query.Sum, len(t.points)), Models: named(t.models), Providers: named(t.providers), Clients: named(t.clients),
	}
	for i := range t.points {
		sums.Points[i] = t.points[i].sum()
	}
	return sums
}

// named gives sums by name, those with the most tokens first.
func named(sums map[string]*tally) []query.NamedSum {
	list := make([]query.NamedSum, 0, len(sums))
	for name, t := range sums {
		list = append(list, query.NamedSum{Name: name, Sum: t.sum()})
	}
	slices.SortFunc(list, func(a, b query.NamedSum) int {
		return cmp.Or(cmp.Compare(b.Prompt+b.Completion, a.Prompt+a.Completion), cmp.Compare(b.Requests, a.Requests), strings.Compare(a.Name, b.Name))
	})
	return list[:min(len(list), maxNamed)]
}
