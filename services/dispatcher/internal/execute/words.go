package execute

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
)

// keysIn says what is the matter with keys that all cool down, by the class of their failure.
func keysIn(classes map[classify.Class]int, total int) string {
	states := map[string]int{}
	for class, n := range classes {
		states[state(class)] += n
	}
	var parts []string
	for _, part := range slices.Sorted(maps.Keys(states)) {
		if n := states[part]; len(states) > 1 {
			part = strconv.Itoa(n) + " " + part
		}
		parts = append(parts, part)
	}
	switch total {
	case 1:
		return "its key " + parts[0]
	case 2:
		return "both keys " + strings.Join(parts, ", ")
	}
	return "all " + strconv.Itoa(total) + " keys " + strings.Join(parts, ", ")
}

// state says what is the matter with a key that cools down.
func state(c classify.Class) string {
	switch {
	case c == classify.Rate:
		return "rate limited"
	case c == classify.Quota:
		return "out of quota"
	case c == classify.Payment:
		return "without balance"
	case refusesKey(c):
		return "refused"
	}
	return "resting after a failure"
}

func gatewaysKeys(n int) string {
	switch n {
	case 1:
		return "the gateway's key"
	case 2:
		return "both of the gateway's keys"
	}
	return "all " + strconv.Itoa(n) + " of the gateway's keys"
}

// words says why a call brought no answer, as the end of a sentence about the provider.
func words(f failure) string {
	switch f.Class {
	case classify.Rate:
		return ": rate limited" + forSo(f.Wait)
	case classify.Quota:
		return ": out of quota" + forSo(f.Wait)
	case classify.Payment:
		return ": no balance left"
	case classify.Auth, classify.Forbidden:
		return " refused " + gatewaysKeys(1) + statusOf(f)
	case classify.Model:
		return " does not have the model" + statusOf(f)
	case classify.Size:
		return ": the request is too large"
	case classify.Untranslatable:
		return " can't be sent this request"
	case classify.Incapable:
		return ": the model can't do what the request needs"
	case classify.BadOutput:
		return ": the model failed at its own output"
	case classify.Client:
		return " refused the request" + statusOf(f)
	case classify.Upstream, classify.Success, classify.Cancelled:
	}
	return ": " + cmp.Or(connection[f.Reason], "no usable answer") + statusOf(f)
}

// connection says what the reasons of package classify mean for somebody who does not know the network.
var connection = map[string]string{
	"connection refused": "no connection", "connect": "no connection", "dns": "no connection", "tls": "no connection", "transport": "no connection",
	"connection reset": "the connection broke off", "connection closed": "the connection broke off", "truncated": "the answer broke off",
	"timeout": "no answer in time", "header timeout": "no answer in time", "total timeout": "no answer in time", "idle timeout": "no answer in time",
	"empty answer": "an empty answer", "no choices": "an empty answer",
	"too large": "an answer that is too large",
}

func statusOf(f failure) string {
	if f.status < 400 {
		return ""
	}
	return " (" + strconv.Itoa(f.status) + ")"
}

func forSo(wait time.Duration) string {
	if wait <= 0 {
		return ""
	}
	return ", " + spoken(wait)
}

// spoken gives a wait in the unit that people would use, rounded up.
func spoken(wait time.Duration) string {
	unit, name := time.Hour, " h"
	switch {
	case wait <= 2*time.Minute:
		unit, name = time.Second, " s"
	case wait <= 2*time.Hour:
		unit, name = time.Minute, " min"
	}
	return strconv.FormatFloat(math.Ceil(float64(wait)/float64(unit)), 'f', 0, 64) + name
}

// moment is a time in UTC, to the second, rounded up.
func moment(t time.Time) string {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
}
