package classify

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"hydrallm/shared/testkit/fixtures"
)

// Whatever an upstream sends: no panic, a sane wait, a printable message, and no key or breaker pays for a client's fault.
func FuzzOf(f *testing.F) {
	for _, s := range fixtures.All() {
		if s.Status >= http.StatusBadRequest || s.Class != "" {
			f.Add(s.Status, s.Kind() == "sse", s.Header.Get("Retry-After"), s.Header.Get("X-Ratelimit-Reset-Tokens"), s.Body)
		}
	}
	f.Add(429, false, "Inf", "1e400", []byte(`{"error":{"message":"try again in 99999999999999999999h9999999999m.s"}}`))
	f.Add(400, false, "", "", []byte(`{"error":{"message":"{\"error\":{\"message\":\"{\\\"error\\\":1}\"}}","details":{"#":1}}}`))
	f.Add(200, true, "", "", []byte("data: [{\"error\":[[[{}]]]}"))
	f.Fuzz(func(t *testing.T, status int, event bool, retryAfter, reset string, body []byte) {
		h := http.Header{"Retry-After": {retryAfter}, "X-Ratelimit-Reset-Tokens": {reset}}
		v := Of(Answer{Status: status, Event: event, Header: h, Body: body, At: at})
		if v.Wait < 0 || v.Wait > maxWait {
			t.Fatalf("wait of %v", v.Wait)
		}
		if !utf8.ValidString(v.Message) || len(v.Message) > maxMessage+utf8.UTFMax {
			t.Fatalf("message %q", v.Message)
		}
		switch v.Class {
		case Client, Size, Model, Incapable, BadOutput:
			if v.Breaker || v.Cooldown != NoCooldown || v.Wait != 0 {
				t.Fatalf("penalty for %+v", v)
			}
		case Success:
			if status/100 != 2 {
				t.Fatalf("success with status %d", status)
			}
		case Upstream, Rate, Quota, Payment, Auth, Forbidden:
		case Cancelled:
			t.Fatal("nobody left")
		default:
			t.Fatalf("class %q", v.Class)
		}
		if v.Next(true) == Final && v.Status/100 != 4 {
			t.Fatalf("final with status %d", v.Status)
		}
	})
}

// Whatever the headers of limits say, in any of their spellings, the wait is one that the gateway can keep, and it is stated only if something says it.
func FuzzWait(f *testing.F) {
	for i, value := range []string{"30", "1.5s", "6m0s", "20ms", "2026-05-01T12:00:00Z", "Fri, 01 May 2026 12:00:00 GMT", "1777636800", "1777636800000", "-1", "NaN", "1e308", "9223372036854775807s", "1h99999999999h", ""} {
		f.Add(uint8(i), value, "0", value, "try again in "+value)
	}
	f.Fuzz(func(t *testing.T, bucket uint8, after, left, reset, words string) {
		b := buckets[int(bucket)%len(buckets)]
		h := http.Header{"Retry-After": {after}, "Retry-After-Ms": {after}, b.remaining: {left}, b.reset: {reset}}
		for _, got := range []hint{headerWait(h, at), resetWait(h, at), messageWait(words, at)} {
			if got.wait < 0 || got.wait > maxWait || got.stated && got.wait == 0 || !got.stated && got.wait != 0 {
				t.Fatalf("%+v", got)
			}
		}
		if d, ok := until(reset, time.Second, at); ok && (d > maxWait || d < -maxWait) {
			t.Fatalf("%q is %v away", reset, d)
		}
	})
}
