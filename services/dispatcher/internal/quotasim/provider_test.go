package quotasim_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// limits are those of one key for one model, as the free tiers of July 2026 have them.
type limits struct {
	perMinute, perDay int
	tokensPerMinute   int
}

var freeTier = map[string]limits{
	"gemini":   {perMinute: 5, perDay: 20, tokensPerMinute: 250_000},
	"groq":     {perMinute: 30, perDay: 1000, tokensPerMinute: 8_000},
	"cerebras": {perMinute: 30, perDay: 14_400, tokensPerMinute: 60_000},
}

// provider is a fake one that counts as strictly as the real one.
type provider struct {
	name   string
	limits limits
	zone   *time.Location // in which its day begins

	down atomic.Bool

	mu    sync.Mutex
	keys  map[string]*account
	early []string // calls that came before the wait was over that an earlier answer asked for
}

// account is what a provider knows of one key.
type account struct {
	served, refused int
	minute, day     time.Time
	inMinute        int
	inDay           int
	tokens          int
	refusedAt       time.Time
	restUntil       time.Time // what the last refusal asked for
}

func newProvider(name string) *provider {
	p := &provider{name: name, limits: freeTier[name], zone: time.UTC, keys: map[string]*account{}}
	if name == "gemini" {
		zone, err := time.LoadLocation("America/Los_Angeles")
		if err != nil {
			panic(err)
		}
		p.zone = zone
	}
	return p
}

// think is how long an answer takes.
const think = 1500 * time.Millisecond

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	arrived := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	time.Sleep(think / 10)                                                                                    //nolint:forbidigo // fake time
	wait, daily := p.take(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), len(body)/4, arrived) // as the gateway estimates
	if p.down.Load() {
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	if wait > 0 {
		p.refuse(w, wait, daily)
		return
	}
	time.Sleep(think) //nolint:forbidigo // fake time
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":"from %s"},`+
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, p.name)
}

// take counts a call. A wait above zero says that it is refused.
func (p *provider) take(key string, tokens int, arrived time.Time) (wait time.Duration, daily bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.keys[key]
	if a == nil {
		a = &account{}
		p.keys[key] = a
	}
	now := time.Now().In(p.zone)
	if arrived.After(a.refusedAt) && now.Before(a.restUntil) { // calls that were on their way could not know
		p.early = append(p.early, fmt.Sprintf("%s %s at %s, until %s", p.name, key, now, a.restUntil))
	}
	if minute := now.Truncate(time.Minute); !minute.Equal(a.minute) {
		a.minute, a.inMinute, a.tokens = minute, 0, 0
	}
	if day := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, p.zone); !day.Equal(a.day) {
		a.day, a.inDay = day, 0
	}
	switch {
	case a.inDay >= p.limits.perDay:
		wait, daily = a.day.AddDate(0, 0, 1).Sub(now), true
	case a.inMinute >= p.limits.perMinute || a.tokens+tokens > p.limits.tokensPerMinute:
		wait = a.minute.Add(time.Minute).Sub(now)
	default:
		a.inDay++
		a.inMinute++
		a.tokens += tokens
		a.served++
		return 0, false
	}
	a.refused++
	a.refusedAt, a.restUntil = now, now.Add(wait)
	return wait, daily
}

// refuse answers as the provider does.
func (p *provider) refuse(w http.ResponseWriter, wait time.Duration, daily bool) {
	w.Header().Set("Content-Type", "application/json")
	var body any
	switch p.name {
	case "gemini":
		quota := "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"
		if daily {
			quota = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
		}
		body = []any{map[string]any{"error": map[string]any{
			"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "You exceeded your current quota.", "details": []any{
				map[string]any{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": []any{map[string]any{"quotaId": quota}}},
				map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%.3fs", wait.Seconds())},
			},
		}}}
	case "groq":
		w.Header().Set("Retry-After", fmt.Sprintf("%.3f", wait.Seconds()))
		body = map[string]any{"error": map[string]any{
			"message": fmt.Sprintf("Rate limit reached for model `x` in organization `org_1`. Please try again in %s.", wait),
			"type":    "requests", "code": "rate_limit_exceeded",
		}}
	default:
		w.Header().Set("X-Ratelimit-Remaining-Requests-Minute", "0")
		w.Header().Set("X-Ratelimit-Reset-Requests-Minute", fmt.Sprintf("%.3f", wait.Seconds()))
		body = map[string]any{"message": "Requests per minute limit exceeded", "type": "too_many_requests_error", "param": "quota", "code": "request_quota_exceeded"}
	}
	w.WriteHeader(http.StatusTooManyRequests)
	_ = json.NewEncoder(w).Encode(body) // to memory
}
