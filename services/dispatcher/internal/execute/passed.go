package execute

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of the headers of an answer that are kept.
const (
	maxLimits     = 24      // headers that tell limits
	maxLimitBytes = 2 << 10 // of them
	maxKeptName   = 64      // bytes
	maxKeptValue  = 256     // bytes
)

const (
	headerRetryAfter   = "Retry-After"
	headerRetryAfterMS = "Retry-After-Ms"
	headerProcessing   = "Openai-Processing-Ms"
	// headerUpstreamID is the upstream's id of the call. X-Request-Id is the gateway's.
	headerUpstreamID = "X-Upstream-Request-Id"
)

// upstreamIDs are the names under which upstreams send an id of the call: OpenAI and most, Anthropic, Azure, Amazon.
var upstreamIDs = []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "X-Amzn-Requestid"}

// keeps says whether a header of an answer, beside those of limits, goes into the ledger. What is not named here does not: it may be a cookie, or
// name the account.
func keeps(name string) bool {
	switch name {
	case "X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "X-Amzn-Requestid", "X-Generation-Id", "Cf-Ray", "X-Groq-Region", "X-Ms-Region",
		"Content-Type", "Server", "Via", headerProcessing, headerRetryAfter, headerRetryAfterMS, "X-Should-Retry":
		return true
	}
	return false
}

func tellsLimit(name string) bool {
	return strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-")
}

// kept gives the headers of an answer that the ledger keeps, by their names.
func kept(h http.Header, clean func(string) string) [][2]string {
	out := make([][2]string, 0, min(len(h), maxLimits))
	limits, size := 0, 0
	for name, values := range h {
		limit := tellsLimit(name)
		if !limit && !keeps(name) {
			continue
		}
		value := values[0]
		if value == "" || len(name) > maxKeptName || len(value) > maxKeptValue || !printable(value) {
			continue
		}
		if limit {
			if limits++; limits > maxLimits || size+len(name)+len(value) > maxLimitBytes {
				continue
			}
			size += len(name) + len(value)
		}
		out = append(out, [2]string{name, clean(value)})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

// passed gives those of the kept headers that mean something to the client of an upstream: limits, the time that it took, and the id of the call
// . They are those of one upstream, and lead astray where there are several.
func passed(kept [][2]string) [][2]string {
	var out [][2]string
	for _, name := range upstreamIDs {
		if i := slices.IndexFunc(kept, func(kv [2]string) bool { return kv[0] == name }); i >= 0 {
			out = append(out, [2]string{headerUpstreamID, kept[i][1]})
			break
		}
	}
	for _, kv := range kept {
		if kv[0] == headerProcessing || kv[0] == headerRetryAfterMS || tellsLimit(kv[0]) {
			out = append(out, kv)
		}
	}
	return out
}

func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// withPassed adds the headers of the upstream to those of an error. Its wait in milliseconds is only kept beside a wait that says the same: SDKs
// believe it first.
func withPassed(header, passed [][2]string) [][2]string {
	wait := ""
	for _, kv := range header {
		if kv[0] == headerRetryAfter {
			wait = kv[1]
		}
	}
	for _, kv := range passed {
		if kv[0] != headerRetryAfterMS || wait != "" && roundedUp(kv[1]) == wait {
			header = append(header, kv)
		}
	}
	return header
}

// roundedUp gives milliseconds as whole seconds; "" when they are none.
func roundedUp(ms string) string {
	n, err := strconv.ParseFloat(ms, 64)
	if err != nil || n <= 0 || n > float64(time.Hour/time.Millisecond) {
		return ""
	}
	return strconv.FormatInt(int64((time.Duration(n*float64(time.Millisecond))+time.Second-1)/time.Second), 10)
}
