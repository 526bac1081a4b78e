package discover_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/shared/modelindex"
)

// round is a runner with providers in memory, named for their hosts.
type round struct {
	*discover.Runner
	log bytes.Buffer

	mu        sync.Mutex
	answers   map[string]memory
	asked     map[string]int
	published map[string]modelindex.Listing
	fresh     map[string]bool
	keyless   map[string]bool
	broken    error // of publishing
}

func newRound(answers map[string]memory, adjust func(*discover.Config)) *round {
	r := &round{
		answers: answers, asked: map[string]int{}, published: map[string]modelindex.Listing{}, fresh: map[string]bool{}, keyless: map[string]bool{},
	}
	cfg := discover.Config{
		Client: memory(r.answer), Logger: slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Keys: func(provider string) []discover.Key {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.keyless[provider] {
				return nil
			}
			return []discover.Key{{Index: 7, Value: "key-of-" + provider}}
		},
		Fresh: func(s discover.Source) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.fresh[s.Provider]
		},
		Publish: func(_ context.Context, l modelindex.Listing) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.broken == nil {
				r.published[l.Provider] = l
			}
			return r.broken
		},
	}
	for host := range answers {
		cfg.Sources = append(cfg.Sources, discover.Source{Provider: host, Dialect: "openai", URL: "http://" + host + "/v1"})
	}
	if adjust != nil {
		adjust(&cfg)
	}
	r.Runner = discover.NewRunner(cfg)
	return r
}

func (r *round) answer(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.asked[req.URL.Host]++
	answer := r.answers[req.URL.Host]
	r.mu.Unlock()
	answer(w, req)
}

func (r *round) set(host string, answer memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers[host] = answer
}

func (r *round) count(host string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[host]
}

func (r *round) listed(host string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l, ok := r.published[host]; ok {
		return ids(l.Models)
	}
	return nil
}

func (r *round) logged() string {
	r.Stop()
	return r.log.String()
}

// hangs never answers; the call ends with its context.
func hangs(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// pass lets the time of a bubble go by.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

var (
	good = say(http.StatusOK, `{"data":[{"id":"m"}]}`)
	more = say(http.StatusOK, `{"data":[{"id":"m"},{"id":"n-chat"}]}`)
)

// the start waits for nobody, and a provider that fails, hangs or sends rubbish stops no other.
func TestOneProviderStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{
			"good": good, "hangs": hangs, "page": say(http.StatusOK, "<html>"), "refuses": say(http.StatusUnauthorized, "{}"),
			"none": say(http.StatusOK, `{"object":"list","data":[]}`),
		}, nil)
		start := time.Now()
		r.Start()
		require.Zero(t, time.Since(start))
		synctest.Wait()
		require.Equal(t, []string{"m"}, r.listed("good"))
		require.Equal(t, []string{}, r.listed("none"))
		require.Nil(t, r.listed("hangs"))
		require.Nil(t, r.listed("page"))
		require.Equal(t, start, r.published["good"].At)
		pass(21 * time.Second)
		log := r.logged()
		for _, provider := range []string{"hangs", "page", "refuses"} {
			require.Contains(t, log, `msg="models not listed" provider=`+provider+` key=7 error="the provider did not list its models: `)
		}
		require.NotContains(t, log, "key-of-")
	})
}

// a key that the provider refuses is no reason to do without its list while there is another; a provider that is down is asked once.
func TestAnotherKeyLists(t *testing.T) {
	t.Parallel()
	byKey := func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), "good") {
			good(w, r)
			return
		}
		say(http.StatusUnauthorized, "{}")(w, r)
	}
	three := func(provider string) []discover.Key {
		if provider == "many" {
			return []discover.Key{{Index: 0}, {Index: 1}, {Index: 2}, {Index: 3, Value: "good"}}
		}
		return []discover.Key{{Index: 0, Value: "bad"}, {Index: 1, Value: "good"}}
	}
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"mixed": byKey, "many": byKey, "down": say(http.StatusBadGateway, "")}, func(cfg *discover.Config) { cfg.Keys = three })
		r.Start()
		defer r.Stop()
		synctest.Wait()
		require.Equal(t, []string{"m"}, r.listed("mixed"))
		require.Nil(t, r.listed("many"))
		require.Equal(t, map[string]int{"mixed": 2, "many": 3, "down": 1}, r.asked)
	})
}

// a provider that sends the key back as the code of its error.
func TestKeyInErrorCode(t *testing.T) {
	t.Parallel()
	const key = "gsk_0123456789abcdef"
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"echo": say(http.StatusUnauthorized, `{"error":{"message":"no `+key+`","code":"`+key+`"}}`)}, func(cfg *discover.Config) {
			cfg.Keys = func(string) []discover.Key { return []discover.Key{{Value: key}} }
		})
		r.Start()
		defer r.Stop()
		synctest.Wait()
		require.Contains(t, r.logged(), "http 401 [redacted]")
		require.NotContains(t, r.logged(), key[:6])
	})
}

// A source whose provider has changed is asked at once, the others are not.
func TestHurry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"good": good, "late": good}, nil)
		r.keyless["late"] = true
		r.Start()
		defer r.Stop()
		pass(3 * time.Hour)
		before := r.asked["good"]
		r.mu.Lock()
		r.keyless["late"] = false
		r.mu.Unlock()
		for range 100 {
			r.RefreshSoon("late")
		}
		r.RefreshSoon("unknown")
		pass(time.Second)
		require.Equal(t, []string{"m"}, r.listed("late"))
		require.Equal(t, before, r.asked["good"])
		require.LessOrEqual(t, r.asked["late"], 2)
	})
}

// a provider that hangs keeps nobody from being asked in a hurry; one that fails then is asked again soon.
func TestHurryWhileAnotherHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		down.Store(true)
		ill := func(w http.ResponseWriter, r *http.Request) {
			if down.Load() {
				say(http.StatusBadGateway, "")(w, r)
				return
			}
			good(w, r)
		}
		r := newRound(map[string]memory{"hangs": hangs, "late": good, "ill": ill}, nil)
		r.keyless["late"], r.keyless["ill"] = true, true
		r.Start()
		defer r.Stop()
		synctest.Wait()
		r.mu.Lock()
		r.keyless["late"], r.keyless["ill"] = false, false
		r.mu.Unlock()
		r.RefreshSoon("late")
		pass(time.Second)
		require.Equal(t, []string{"m"}, r.listed("late"))
		pass(5 * time.Hour) // by now misses have added up
		r.RefreshSoon("ill")
		pass(time.Second)
		down.Store(false)
		pass(2 * time.Minute)
		require.Equal(t, []string{"m"}, r.listed("ill"))
	})
}

// Sources are asked every hour; one that failed is asked again after a minute, then less and less often.
func TestTimes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"good": good, "bad": say(http.StatusBadGateway, "")}, nil)
		r.Start()
		defer r.Stop()
		pass(59 * time.Second)
		require.Equal(t, 1, r.count("bad"))
		pass(8 * time.Second)
		require.Equal(t, 2, r.count("bad"))
		require.Equal(t, 1, r.count("good"))
		pass(58 * time.Minute)
		require.Equal(t, 1, r.count("good"))
		require.Equal(t, 6, r.count("bad"))
		pass(9 * time.Minute)
		require.Equal(t, 2, r.count("good"))
		pass(10 * time.Hour)
		require.InDelta(t, 12, r.count("good"), 1)
		require.InDelta(t, 17, r.count("bad"), 1)
	})
}

// What a provider said stays when it fails later, and is replaced when it says something else.
func TestLastGoodListingStays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"a": good}, nil)
		defer r.Stop()
		require.NoError(t, r.Refresh(t.Context()))
		r.set("a", say(http.StatusServiceUnavailable, ""))
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, []string{"m"}, r.listed("a"))
		r.set("a", more)
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, []string{"n-chat", "m"}, r.listed("a"))
	})
}

// a refresh asks everybody anew; concurrent ones share a round, and a running background round does not count for them.
func TestRefresh(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(w http.ResponseWriter, r *http.Request) {
			<-time.After(5 * time.Second)
			good(w, r)
		}
		r := newRound(map[string]memory{"a": slow, "b": good}, nil)
		r.fresh["b"] = true
		r.Start()
		synctest.Wait()
		start := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if err := r.Refresh(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.Equal(t, 10*time.Second, time.Since(start))
		require.Equal(t, 2, r.count("a"))
		require.Equal(t, 1, r.count("b"), "fresh for the background round, not for the refresh")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, r.Refresh(ctx), context.DeadlineExceeded)
		pass(time.Minute)
		require.Equal(t, 3, r.count("a"), "the round goes on without the one who asked for it")
		r.Stop()
		r.Stop()
		require.ErrorIs(t, r.Refresh(t.Context()), discover.ErrStopped)
	})
}

// What another dispatcher listed a moment ago is left alone, as is a provider without a key.
func TestSkipped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"fresh": good, "keyless": good, "other": good}, nil)
		r.fresh["fresh"], r.keyless["keyless"] = true, true
		r.Start()
		synctest.Wait()
		require.Zero(t, r.count("fresh"))
		require.Zero(t, r.count("keyless"))
		require.Equal(t, []string{"m"}, r.listed("other"))
		r.mu.Lock()
		r.keyless["keyless"] = false
		r.mu.Unlock()
		require.NoError(t, r.Refresh(t.Context()))
		require.Equal(t, 1, r.count("fresh"))
		require.Equal(t, []string{"m"}, r.listed("keyless"))
		require.Contains(t, r.logged(), `level=DEBUG msg="models not listed: no key to use" provider=keyless`)
	})
}

// A listing that could not be published is listed again soon.
func TestPublishingFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"a": good}, nil)
		r.broken = errors.New("no bus")
		r.Start()
		synctest.Wait()
		require.Nil(t, r.listed("a"))
		r.mu.Lock()
		r.broken = nil
		r.mu.Unlock()
		pass(67 * time.Second)
		require.Equal(t, []string{"m"}, r.listed("a"))
		require.Contains(t, r.logged(), `msg="models not published" provider=a error="no bus"`)
	})
}

// A runner stops at once, whatever hangs, and logs nothing about it.
func TestStopEndsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRound(map[string]memory{"a": hangs}, nil)
		r.Start()
		failed := make(chan error, 1)
		go func() { failed <- r.Refresh(context.Background()) }()
		synctest.Wait()
		start := time.Now()
		log := r.logged()
		require.Zero(t, time.Since(start))
		require.ErrorIs(t, <-failed, discover.ErrStopped)
		require.Empty(t, log)
	})
}

// A runner that was never started can be stopped.
func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	newRound(nil, nil).Stop()
}
