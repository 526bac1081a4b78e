package classify

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// maxWait bounds what a hint may ask for; the configured maximum is usually lower.
const maxWait = 31 * 24 * time.Hour

// wait finds how long the upstream wants to be left alone, in the order of trust: headers, details of the body, words of the message, reset
// headers. A daily limit of Google outweighs them all, because its hints are too short.
func (a Answer) wait(c Class, p *problem) (d time.Duration, stated bool) {
	limited := c == Rate || c == Quota
	if limited && googlePerDay(p) {
		return untilCalifornianMidnight(a.clock()), true
	}
	for _, hint := range [...]func() time.Duration{
		func() time.Duration { return headerWait(a.Header, a.clock()) },
		func() time.Duration { return headerWait(p.header, a.clock()) },
		func() time.Duration { return detailsWait(p.obj.Get("details")) },
		func() time.Duration { return messageWait(p.message) },
	} {
		if d := hint(); d > 0 {
			return d, true
		}
	}
	if limited {
		for _, h := range [...]http.Header{a.Header, p.header} {
			if d := resetWait(h, a.clock()); d > 0 {
				return d, true
			}
		}
	}
	return customaryWait(p), false
}

// headerWait reads retry-after-ms and Retry-After, which may be seconds with a fraction or a date.
func headerWait(h http.Header, now time.Time) time.Duration {
	if d := number(h.Get("Retry-After-Ms"), time.Millisecond); d > 0 {
		return d
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if d := number(value, time.Second); d > 0 {
		return d
	}
	if at, err := http.ParseTime(value); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}

// detailsWait reads Google's list of details: RetryInfo.retryDelay, and quotaResetDelay in the metadata of an ErrorInfo.
func detailsWait(details gjson.Result) time.Duration {
	if !details.IsArray() {
		return 0
	}
	for _, path := range [...]string{"#(retryDelay).retryDelay", "#(metadata.quotaResetDelay).metadata.quotaResetDelay"} {
		if d, err := time.ParseDuration(details.Get(path).Str); err == nil && d > 0 {
			return bounded(d)
		}
	}
	return 0
}

// messageWait reads "try again in 7.66s", "retry in 1m2.5s", "try again in 850ms", "retry after 20 seconds".
func messageWait(message string) time.Duration {
	message = strings.ToLower(message)
	for _, phrase := range [...]string{"again in ", "retry in ", "retry after ", "again after "} {
		if _, rest, ok := strings.Cut(message, phrase); ok {
			if d := spokenDuration(rest); d > 0 {
				return d
			}
		}
	}
	return 0
}

var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hour": time.Hour, "hours": time.Hour,
}

// spokenDuration reads pairs of number and unit at the beginning of s until something else comes.
func spokenDuration(s string) time.Duration {
	var total time.Duration
	for {
		s = strings.TrimLeft(s, " ")
		digits := len(s) - len(strings.TrimLeft(s, "0123456789."))
		value := strings.TrimRight(s[:digits], ".")
		s = strings.TrimLeft(s[digits:], " ")
		letters := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz"))
		unit, ok := units[s[:letters]]
		if !ok {
			return total
		}
		total, s = bounded(total+number(value, unit)), s[letters:]
	}
}

// buckets are the limits that providers count in headers.
var buckets = []struct {
	remaining, reset string
	tokens           bool // a request may need more than the rest, so the bucket may be the cause even if something is left
}{
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests", false},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens", true},
	{"X-Ratelimit-Remaining-Requests-Minute", "X-Ratelimit-Reset-Requests-Minute", false},
	{"X-Ratelimit-Remaining-Requests-Day", "X-Ratelimit-Reset-Requests-Day", false},
	{"X-Ratelimit-Remaining-Tokens-Minute", "X-Ratelimit-Reset-Tokens-Minute", true},
	{"X-Ratelimit-Remaining-Tokens-Day", "X-Ratelimit-Reset-Tokens-Day", true},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset", false},
	{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset", true},
	{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset", true},
	{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset", true},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset", false},
	{"Ratelimit-Remaining", "Ratelimit-Reset", false},
}

// resetWait gives the reset of the exhausted bucket, the longest when there are several. When none says that it is exhausted, it is the
// longest of those that may be.
func resetWait(h http.Header, now time.Time) time.Duration {
	var exhausted, unclear time.Duration
	for _, b := range buckets {
		reset := resetIn(h.Get(b.reset), now)
		if reset <= 0 {
			continue
		}
		switch left, err := strconv.ParseFloat(h.Get(b.remaining), 64); {
		case err == nil && left <= 0:
			exhausted = max(exhausted, reset)
		case err != nil, b.tokens:
			unclear = max(unclear, reset)
		}
	}
	if exhausted > 0 {
		return exhausted
	}
	return unclear
}

// resetIn reads the spellings of a reset: a duration, an RFC 3339 time, seconds, or an epoch in seconds or milliseconds.
func resetIn(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		switch {
		case math.IsNaN(n) || math.IsInf(n, 0):
			return 0
		case n > 1e12:
			return bounded(time.UnixMilli(int64(min(n, 1e15))).Sub(now))
		case n > 1e9:
			return bounded(time.Unix(int64(n), 0).Sub(now))
		}
		return number(value, time.Second)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return bounded(d)
	}
	if at, err := time.Parse(time.RFC3339, value); err == nil {
		return bounded(at.Sub(now))
	}
	return 0
}

// customaryWait is what some providers are known to need although they do not say so.
func customaryWait(p *problem) time.Duration {
	switch {
	case p.code == "queue_exceeded", p.code == "1300": // Cerebras: a full queue; Mistral: one request per second
		return 2 * time.Second
	case strings.HasPrefix(p.message, "Loading model"), strings.HasPrefix(p.message, "Concurrency limit"): // llama.cpp, DeepSeek
		return 5 * time.Second
	}
	return 0
}

// untilCalifornianMidnight is the time until Google's daily limits start anew.
func untilCalifornianMidnight(now time.Time) time.Duration {
	zone, err := time.LoadLocation("America/Los_Angeles")
	if err != nil { // no time zone data on this machine: winter time, at most an hour too long
		zone = time.FixedZone("PST", -8*60*60)
	}
	local := now.In(zone)
	return time.Date(local.Year(), local.Month(), local.Day()+1, 0, 0, 0, 0, zone).Sub(now)
}

// number reads a decimal number of units; 0 when it is none or not above zero.
func number(s string, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || n <= 0 {
		return 0
	}
	return time.Duration(min(math.Round(n*float64(unit)), float64(maxWait)))
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }
