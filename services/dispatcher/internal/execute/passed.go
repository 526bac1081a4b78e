package execute

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Bounds of the headers of an upstream that are passed on.
const (
	maxPassed      = 32
	maxPassedName  = 64  // bytes
	maxPassedValue = 256 // bytes
)

const (
	headerRetryAfter   = "Retry-After"
	headerRetryAfterMS = "Retry-After-Ms"
	// headerUpstreamID is the upstream's id of the call. X-Request-Id is the gateway's.
	headerUpstreamID = "X-Upstream-Request-Id"
)

// upstreamIDs are the names under which upstreams send an id of the call: OpenAI and most, Anthropic, Azure, Amazon.
var upstreamIDs = []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Ms-Request-Id", "X-Amzn-Requestid"}

// passed gives the headers of an upstream that mean something to its client: limits, the time that it took, and the id of the call. They
// are those of one upstream, and lead astray where there are several.
func passed(h http.Header, clean func(string) string) [][2]string {
	var out [][2]string
	add := func(name, value string) {
		if value != "" && len(name) <= maxPassedName && len(value) <= maxPassedValue && !strings.ContainsFunc(value, unprintable) && len(out) < maxPassed {
			out = append(out, [2]string{name, clean(value)})
		}
	}
	for _, name := range upstreamIDs {
		if id := h.Get(name); id != "" {
			add(headerUpstreamID, id)
			break
		}
	}
	add("Openai-Processing-Ms", h.Get("Openai-Processing-Ms"))
	add(headerRetryAfterMS, h.Get(headerRetryAfterMS))
	first := len(out)
	for name, values := range h {
		if strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-") {
			add(name, values[0])
		}
	}
	slices.SortFunc(out[first:], func(a, b [2]string) int { return cmp.Compare(a[0], b[0]) })
	return out
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

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
