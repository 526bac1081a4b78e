package clientkey_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var discard = slog.New(slog.DiscardHandler)

// nothing is the usage of clients that have used nothing.
func nothing(_ context.Context, clients []query.ClientSince) ([]query.ClientUsage, error) {
	return make([]query.ClientUsage, len(clients)), nil
}

// counts is a store within a bubble of time, where no server of NATS can be.
type counts struct {
	mu     sync.Mutex
	values map[string]bus.Entry
	err    error
	asked  int
}

func (c *counts) Get(_ context.Context, key string) (bus.Entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	e, ok := c.values[key]
	if c.err != nil {
		return e, c.err
	}
	if !ok {
		return e, bus.ErrKeyNotFound
	}
	return e, nil
}

func (c *counts) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return c.Update(ctx, key, value, 0)
}

func (c *counts) Update(_ context.Context, key string, value []byte, revision uint64) (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	if c.values == nil {
		c.values = map[string]bus.Entry{}
	}
	e := c.values[key]
	if e.Revision != revision {
		return 0, bus.ErrConflict
	}
	c.values[key] = bus.Entry{Key: key, Value: value, Revision: revision + 1}
	return revision + 1, nil
}

func (c *counts) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func admitted(ctx context.Context, g *clientkey.Gate, k *clientkey.Key, tokens int64) bool {
	_, f := g.Admit(ctx, k, tokens)
	return f == nil
}

// over several ingresses no more requests are let in than the limit says, and as many, whatever comes at the same time.
func TestRequestLimitOverSeveralIngresses(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	for _, limit := range []int64{1, 7, 100, 1000} {
		k := &clientkey.Key{ID: fmt.Sprint("ck_", limit), Limits: clientkey.Limits{Requests: limit}}
		var passed atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			bucket, err := bustest.Connect(t, server).Bucket(t.Context(), subject.ClientCountsBucket)
			require.NoError(t, err)
			g := clientkey.NewGate(bucket, nothing, time.Now, time.UTC, discard)
			for range 8 {
				wg.Go(func() {
					for range limit/8 + 10 {
						if admitted(t.Context(), g, k, 0) {
							passed.Add(1)
						}
					}
				})
			}
		}
		begun := time.Now()
		wg.Wait()
		if time.Since(begun) < 50*time.Second { // else there was a second window
			require.Equal(t, limit, passed.Load())
		}
	}
}

// the same for tokens. What one ingress has left at the end may be too little for a request.
func TestTokenLimitOverSeveralIngresses(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	k := &clientkey.Key{ID: "ck_tokens", Limits: clientkey.Limits{Tokens: 10_000}}
	var used atomic.Int64
	var wg sync.WaitGroup
	begun := time.Now()
	for range 2 {
		bucket, err := bustest.Connect(t, server).Bucket(t.Context(), subject.ClientCountsBucket)
		require.NoError(t, err)
		g := clientkey.NewGate(bucket, nothing, time.Now, time.UTC, discard)
		for i := range 8 {
			wg.Go(func() {
				for range 200 {
					if n := int64(13 + i); admitted(t.Context(), g, k, n) {
						used.Add(n)
					}
				}
			})
		}
	}
	wg.Wait()
	if time.Since(begun) < 50*time.Second {
		require.LessOrEqual(t, used.Load(), int64(10_000))
		require.Greater(t, used.Load(), int64(9_000), "little is lost")
	}
}

// a window begins with the first request, and has a minute; what is left, and when there will be more, is told.
func TestWindows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counts{}
		one, two := clientkey.NewGate(store, nothing, time.Now, time.UTC, discard), clientkey.NewGate(store, nothing, time.Now, time.UTC, discard)
		k := &clientkey.Key{ID: "ck_a", Limits: clientkey.Limits{Requests: 3, Tokens: 100}}
		require.Equal(t, clientkey.State{Requests: clientkey.Rate{Limit: 3, Remaining: 3}, Tokens: clientkey.Rate{Limit: 100, Remaining: 100}}, one.State(k, time.Now()))
		require.True(t, admitted(t.Context(), one, k, 10))
		<-time.After(20 * time.Second)
		require.True(t, admitted(t.Context(), two, k, 10))
		require.Equal(t, clientkey.Rate{Limit: 3, Remaining: 1, Reset: 40 * time.Second}, two.State(k, time.Now()).Requests)
		_, f := two.Admit(t.Context(), k, 90)
		require.Equal(t, http.StatusTooManyRequests, f.Status())
		require.Equal(t, "rate_limit_exceeded", f.PublicCode())
		require.Equal(t, 40*time.Second, f.RetryAfter)
		_, f = two.Admit(t.Context(), k, 101)
		require.Equal(t, fault.Never, f.RetryAfter, "it is never let in")
		require.True(t, admitted(t.Context(), two, k, 1), "what was refused for its tokens is no request")
		_, f = one.Admit(t.Context(), k, 1)
		require.Equal(t, 40*time.Second, f.RetryAfter)
		_, f = two.Admit(t.Context(), k, 1)
		require.NotNil(t, f)
		<-time.After(40*time.Second - time.Millisecond)
		require.False(t, admitted(t.Context(), one, k, 1))
		<-time.After(time.Millisecond)
		require.True(t, admitted(t.Context(), two, k, 100))
		require.True(t, admitted(t.Context(), one, k, 0))
	})
}

// what a request used in truth counts in place of the estimate, and what was too much is seen by the other ingresses.
func TestTokensAreCorrected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counts{}
		one, two := clientkey.NewGate(store, nothing, time.Now, time.UTC, discard), clientkey.NewGate(store, nothing, time.Now, time.UTC, discard)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { one.Run(ctx) })
		defer wg.Wait()
		defer stop()
		k := &clientkey.Key{ID: "ck_a", Limits: clientkey.Limits{Tokens: 100}}
		admit := func(g *clientkey.Gate, n int64) *clientkey.Pass {
			p, f := g.Admit(t.Context(), k, n)
			require.Nil(t, f)
			return p
		}
		left := func(g *clientkey.Gate) int64 { return g.State(k, time.Now()).Tokens.Remaining }
		p := admit(one, 50)
		p.Settle(contract.End{Outcome: contract.OutcomeSuccess, Prompt: 10, Completion: 10, Total: 20})
		p.Settle(contract.End{Outcome: contract.OutcomeError})
		require.Equal(t, int64(80), left(one), "it is settled once")
		admit(one, 10).Settle(contract.End{Outcome: contract.OutcomeError})
		require.Equal(t, int64(80), left(one), "what failed without tokens used none")
		admit(one, 10).Settle(contract.End{Outcome: contract.OutcomeSuccess})
		admit(one, 10).Settle(contract.End{})
		require.Equal(t, int64(60), left(one), "the estimate counts for what nobody tells")
		admit(one, 10).Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 70})
		synctest.Wait()
		require.Zero(t, left(one))
		require.False(t, admitted(t.Context(), two, k, 11), "the other one knows of it")

		<-time.After(time.Minute)
		late := admit(two, 1)
		<-time.After(time.Minute)
		late.Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 500})
		_, f := two.Admit(t.Context(), k, 1)
		require.NotNil(t, f, "what a long answer used counts when it has ended")
		require.Equal(t, time.Minute, f.RetryAfter)
		require.False(t, admitted(t.Context(), one, k, 1))
		<-time.After(time.Minute)
		admit(one, 100).Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 1})
	})
}

// most requests ask no store, and none that is refused for the limit.
func TestLittleIsAsked(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counts{}
		g := clientkey.NewGate(store, nothing, time.Now, time.UTC, discard)
		k := &clientkey.Key{ID: "ck_a", Limits: clientkey.Limits{Requests: 1000}}
		for range 1000 {
			require.True(t, admitted(t.Context(), g, k, 0))
		}
		require.Less(t, store.asked, 50)
		before := store.asked
		for range 1000 {
			require.False(t, admitted(t.Context(), g, k, 0))
		}
		require.LessOrEqual(t, store.asked, before+1)
		changed := *k
		changed.Limits.Requests = 1010
		passed := 0
		for range 100 {
			if admitted(t.Context(), g, &changed, 0) {
				passed++
			}
		}
		require.Equal(t, 10, passed, "a limit that is raised is so at once")
	})
}

// while NATS is away each ingress holds the limit by itself.
func TestWithoutTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &counts{}
		store.fail(errors.New("away"))
		g := clientkey.NewGate(store, nothing, time.Now, time.UTC, discard)
		k := &clientkey.Key{ID: "ck_a", Limits: clientkey.Limits{Requests: 5}}
		for range 3 {
			passed := 0
			for range 20 {
				if admitted(t.Context(), g, k, 0) {
					passed++
				}
			}
			require.Equal(t, 5, passed)
			<-time.After(time.Minute)
		}
		store.fail(nil)
		require.True(t, admitted(t.Context(), g, k, 0))
		other := clientkey.NewGate(store, nothing, time.Now, time.UTC, discard)
		require.Equal(t, 4, func() (n int) {
			for range 20 {
				if admitted(t.Context(), other, k, 0) {
					n++
				}
			}
			return n
		}(), "it is common again")
	})
}

// used is a database that knows what clients have used.
type used struct {
	mu    sync.Mutex
	usage query.ClientUsage
	err   error
	asked []query.ClientSince
}

func (u *used) ask(_ context.Context, clients []query.ClientSince) ([]query.ClientUsage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, clients...)
	all := make([]query.ClientUsage, len(clients))
	for i := range all {
		all[i] = u.usage
	}
	return all, u.err
}

func (u *used) is(usage query.ClientUsage, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.usage, u.err = usage, err
}

// a budget counts what the database knows, and what was used here since; it ends requests until its period is over, in the time zone of the gateway.
func TestBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		seoul := time.FixedZone("KST", 9*3600)
		db := &used{}
		db.is(query.ClientUsage{Tokens: 60, CostNanos: 1}, nil)
		g := clientkey.NewGate(&counts{}, db.ask, time.Now, seoul, discard)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { g.Run(ctx) })
		defer wg.Wait()
		defer stop()
		k := &clientkey.Key{ID: "ck_a", Budget: &clientkey.Budget{Amount: 100, Unit: clientkey.Tokens, Period: clientkey.Day}}
		p, f := g.Admit(t.Context(), k, 0)
		require.Nil(t, f)
		require.Equal(t, time.Date(2000, 1, 1, 0, 0, 0, 0, seoul).UTC(), db.asked[0].Since.UTC(), "the bubble begins at nine o'clock there")
		for range 100 {
			require.True(t, admitted(t.Context(), g, k, 0))
		}
		require.Len(t, db.asked, 1)
		p.Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 39})
		require.True(t, admitted(t.Context(), g, k, 0))
		db.is(query.ClientUsage{Tokens: 100}, nil) // another ingress
		<-time.After(6 * time.Second)
		_, f = g.Admit(t.Context(), k, 0)
		require.Equal(t, http.StatusTooManyRequests, f.Status())
		require.Equal(t, "insufficient_quota", f.PublicCode())
		require.Equal(t, "insufficient_quota", f.Type())
		require.Greater(t, f.RetryAfter, 14*time.Hour)

		raised := *k
		raised.Budget = &clientkey.Budget{Amount: 101, Unit: clientkey.Tokens, Period: clientkey.Day}
		require.True(t, admitted(t.Context(), g, &raised, 0))
		db.is(query.ClientUsage{Tokens: 5000}, errors.New("away"))
		<-time.After(10 * time.Second)
		require.True(t, admitted(t.Context(), g, &raised, 0), "the last known sum counts")
		require.False(t, admitted(t.Context(), g, k, 0))

		db.is(query.ClientUsage{}, nil)
		<-time.After(15 * time.Hour) // midnight in Seoul
		require.True(t, admitted(t.Context(), g, k, 0))
		month := *k
		month.Budget = &clientkey.Budget{Amount: 0.5, Unit: clientkey.Money, Period: clientkey.Month}
		db.is(query.ClientUsage{CostNanos: 400_000_000}, nil)
		p, f = g.Admit(t.Context(), &month, 0)
		require.Nil(t, f)
		p.Settle(contract.End{Outcome: contract.OutcomeSuccess, CostNanos: 100_000_000})
		require.False(t, admitted(t.Context(), g, &month, 0))
	})
}

// of an unknown sum the database is asked once at a time; while it does not answer, requests go on.
func TestBudgetWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		g := clientkey.NewGate(&counts{}, func(ctx context.Context, _ []query.ClientSince) ([]query.ClientUsage, error) {
			asked.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}, time.Now, time.UTC, discard)
		k := &clientkey.Key{ID: "ck_a", Budget: &clientkey.Budget{Amount: 10, Unit: clientkey.Tokens, Period: clientkey.Month}}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if p, f := g.Admit(t.Context(), k, 0); f == nil {
					p.Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 1})
				}
			})
		}
		wg.Wait()
		require.Equal(t, int64(1), asked.Load())
		require.False(t, admitted(t.Context(), g, k, 0), "what was used here counts")
	})
}

// Periods begin at midnight, whatever the zone does with its clocks.
func TestPeriods(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	at := func(text string) time.Time {
		v, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		return v
	}
	for _, tt := range []struct {
		p              clientkey.Period
		now, from, end string
	}{
		{clientkey.Day, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}, // 23 hours
		{clientkey.Day, "2026-03-28T23:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{clientkey.Month, "2026-12-31T22:59:59Z", "2026-11-30T23:00:00Z", "2026-12-31T23:00:00Z"},
		{clientkey.Month, "2026-12-31T23:00:00Z", "2026-12-31T23:00:00Z", "2027-01-31T23:00:00Z"},
	} {
		from, end := tt.p.Bounds(at(tt.now), berlin)
		require.Equal(t, at(tt.from), from.UTC())
		require.Equal(t, at(tt.end), end.UTC())
	}
}

func BenchmarkAdmit(b *testing.B) {
	g := clientkey.NewGate(&counts{}, nothing, time.Now, time.UTC, discard)
	for name, k := range map[string]*clientkey.Key{
		"no limits": {ID: "ck_a"},
		"limits and budget": {
			ID: "ck_b", Limits: clientkey.Limits{Requests: 1e9, Tokens: 1e12}, Budget: &clientkey.Budget{Amount: 1e12, Unit: clientkey.Tokens, Period: clientkey.Month},
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, f := g.Admit(b.Context(), k, 100)
				if f != nil {
					b.Fatal(f)
				}
				p.Settle(contract.End{Outcome: contract.OutcomeSuccess, Total: 120})
			}
		})
	}
}
