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

// atOnce is what a stated wait of nothing, or of a time that has passed, counts as.
const atOnce = time.Second

// hint is a wait that an upstream states.
type hint struct {
	wait   time.Duration
	stated bool
}

// after is the hint of an upstream that wants to be left alone for so long.
func after(d time.Duration) hint {
	if d <= 0 {
		d = atOnce
	}
	return hint{min(d, maxWait), true}
}

// wait finds how long the upstream wants to be left alone, in the order of trust: headers, members and details of the body, words of the
// message, reset headers. A daily limit of Google outweighs them all, because its hints are too short.
func (a Answer) wait(c Class, p *problem) (d time.Duration, stated bool) {
	limited := c == Rate || c == Quota
	if limited && googlePerDay(p) {
		return untilCalifornianMidnight(a.clock()), true
	}
	now := a.clock()
	for _, find := range [...]func() hint{
		func() hint { return headerWait(a.Header, now) },
		func() hint { return headerWait(p.header, now) },
		func() hint { return detailsWait(p.obj.Get("details"), now) },
		func() hint { return membersWait(p, now) },
		func() hint { return messageWait(p.message, now) },
	} {
		if h := find(); h.stated {
			return h.wait, true
		}
	}
	if limited {
		for _, h := range [...]http.Header{a.Header, p.header} {
			if reset := resetWait(h, now); reset.stated {
				return reset.wait, true
			}
		}
	}
	return customaryWait(p), false
}

// headerWait reads retry-after-ms and Retry-After, which is meant to be seconds or a date, and may be any other spelling of a wait.
func headerWait(h http.Header, now time.Time) hint {
	if ms := statedWait(h.Get("Retry-After-Ms"), time.Millisecond, now); ms.stated {
		return ms
	}
	return statedWait(h.Get("Retry-After"), time.Second, now)
}

// detailsWait reads Google's list of details: RetryInfo.retryDelay, and quotaResetDelay in the metadata of an ErrorInfo.
func detailsWait(details gjson.Result, now time.Time) hint {
	if !details.IsArray() {
		return hint{}
	}
	for _, path := range [...]string{"#(retryDelay).retryDelay", "#(metadata.quotaResetDelay).metadata.quotaResetDelay"} {
		if wait := memberWait(details.Get(path), time.Second, now); wait.stated {
			return wait
		}
	}
	return hint{}
}

// waitMembers are members of error bodies that state a wait, in lower case without underscores, and the unit of their numbers.
var waitMembers = map[string]time.Duration{
	"retryafterms": time.Millisecond, "retryafter": time.Second, "retryafterseconds": time.Second, "retryaftersec": time.Second,
	"retryin": time.Second, "retrydelay": time.Second, "resetsinseconds": time.Second, "resetinseconds": time.Second, "resetsin": time.Second,
	"resetafter": time.Second, "quotaresetdelay": time.Second, "resetsat": time.Second, "resetat": time.Second, "retryat": time.Second,
}

// membersWait reads members of the body and of the error inside it.
func membersWait(p *problem, now time.Time) (found hint) {
	for _, object := range [...]gjson.Result{p.obj, p.obj.Get("metadata"), p.root, p.root.Get("detail")} {
		if !object.IsObject() {
			continue
		}
		object.ForEach(func(key, value gjson.Result) bool {
			unit, ok := waitMembers[strings.ToLower(strings.ReplaceAll(key.Str, "_", ""))]
			if ok && !found.stated {
				found = memberWait(value, unit, now)
			}
			return !found.stated
		})
		if found.stated {
			break
		}
	}
	return found
}

// memberWait reads the value of a member.
func memberWait(v gjson.Result, unit time.Duration, now time.Time) hint {
	if v.Type == gjson.Number {
		return statedWait(v.Raw, unit, now)
	}
	return statedWait(v.Str, unit, now)
}

// statedWait reads a number of units, a duration in Go's, ISO 8601's or words' spelling, or a moment.
func statedWait(text string, unit time.Duration, now time.Time) hint {
	text = strings.TrimSpace(text)
	if d, ok := until(text, unit, now); ok {
		return after(d)
	}
	text = strings.ToLower(text)
	if iso, found := strings.CutPrefix(text, "p"); found { // P1DT2H30M
		text = strings.ReplaceAll(iso, "t", " ")
	}
	if d, ok := spokenDuration(text); ok {
		return after(d)
	}
	return hint{}
}

// phrases come before a duration or a moment in messages.
var phrases = [...]string{
	"again in ", "retry in ", "retry after ", "again after ", "again at ", "retry at ", "reset after ", "resets after ", "reset in ", "resets in ",
	"reset at ", "resets at ", "available in ", "please wait ", "wait for ", "regain access on ",
}

// messageWait reads "try again in 7.66s", "retry in 1m2.5s", "try again in 850ms", "retry after 20 seconds", "will reset after 26h10m",
// "resets at 2026-12-01T00:00:00Z".
func messageWait(message string, now time.Time) hint {
	lower := strings.ToLower(message)
	for _, phrase := range phrases {
		for rest := lower; ; {
			_, behind, found := strings.Cut(rest, phrase)
			if !found {
				break
			}
			rest = behind
			if d, ok := spokenDuration(rest); ok {
				return after(d)
			}
			if at, ok := moment(rest); ok {
				return after(at.Sub(now))
			}
		}
	}
	return hint{}
}

// moment reads a time at the beginning of s, which is in lower case.
func moment(s string) (time.Time, bool) {
	end := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789-:.tz+", r) })
	if end < 0 {
		end = len(s)
	}
	at, err := parseTime(strings.ToUpper(strings.TrimRight(s[:end], ".:-+")))
	return at, err == nil
}

var units = map[string]time.Duration{
	"ms": time.Millisecond, "millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour, "days": 24 * time.Hour,
}

// spokenDuration reads pairs of number and unit at the beginning of s until something else comes; "a" and "an" are numbers too.
func spokenDuration(s string) (total time.Duration, ok bool) {
	for {
		s = strings.TrimLeft(s, " ")
		if ok { // further pairs may be joined by words
			s = strings.TrimPrefix(strings.TrimLeft(strings.TrimPrefix(s, ","), " "), "and ")
		}
		for _, article := range [...]string{"an ", "a "} {
			if rest, found := strings.CutPrefix(s, article); found {
				s = "1 " + rest
			}
		}
		digits := len(s) - len(strings.TrimLeft(s, "0123456789."))
		value := strings.TrimRight(s[:digits], ".")
		s = strings.TrimLeft(s[digits:], " ")
		letters := len(s) - len(strings.TrimLeft(s, "abcdefghijklmnopqrstuvwxyz"))
		unit, known := units[s[:letters]]
		d, isNumber := number(value, unit)
		if !known || !isNumber {
			return total, ok
		}
		total, ok, s = bounded(total+d), true, s[letters:]
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
func resetWait(h http.Header, now time.Time) hint {
	var exhausted, unclear hint
	for _, b := range buckets {
		reset, stated := until(strings.TrimSpace(h.Get(b.reset)), time.Second, now)
		if !stated {
			continue
		}
		switch left, err := strconv.ParseFloat(h.Get(b.remaining), 64); {
		case err == nil && left <= 0:
			exhausted = longer(exhausted, after(reset))
		case err != nil, b.tokens && reset > 0: // a full bucket has nothing to wait for
			unclear = longer(unclear, after(reset))
		}
	}
	if exhausted.stated {
		return exhausted
	}
	return unclear
}

func longer(a, b hint) hint {
	if a.wait > b.wait {
		return a
	}
	return b
}

// until reads how long it is to the time that a value gives: a number of units, a duration, an RFC 3339 time or that of an HTTP header, or an
// epoch in seconds or milliseconds.
func until(value string, unit time.Duration, now time.Time) (d time.Duration, ok bool) {
	if n, err := strconv.ParseFloat(value, 64); err == nil {
		switch {
		case math.IsNaN(n):
			return 0, false
		case n > 1e12:
			return bounded(time.UnixMilli(int64(min(n, 1e15))).Sub(now)), true
		case n > 1e9:
			return bounded(time.Unix(int64(n), 0).Sub(now)), true
		}
		return number(value, unit)
	}
	if d, err := time.ParseDuration(value); err == nil {
		return bounded(d), true
	}
	at, err := parseTime(value)
	return bounded(at.Sub(now)), err == nil
}

// parseTime reads the spellings of a moment; one without a zone is meant in UTC.
func parseTime(value string) (time.Time, error) {
	for _, layout := range [...]string{time.RFC3339, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return http.ParseTime(value)
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

// number reads a decimal number of units. What is below zero counts as zero.
func number(s string, unit time.Duration) (d time.Duration, ok bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) {
		return 0, false
	}
	return time.Duration(min(math.Round(max(n, 0)*float64(unit)), float64(maxWait))), true
}

func bounded(d time.Duration) time.Duration { return min(max(d, 0), maxWait) }
