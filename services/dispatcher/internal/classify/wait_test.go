package classify

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// the spellings of a stated wait, one row each (FO-01, FO-03).
func TestStatedWait(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	slow := `{"error":{"message":"slow","type":"rate_limit_error"}}`
	google := func(details string) string {
		return `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"quota. Please retry in 9s.","details":[` + details + `]}}`
	}
	says := func(message string) string { return `{"error":{"message":"` + message + `"}}` }
	epoch := func(d time.Duration, unit time.Duration) string {
		return strconv.FormatInt(at.Add(d).UnixNano()/int64(unit), 10)
	}
	for name, c := range map[string]struct {
		header map[string]string
		body   string
		want   time.Duration
	}{
		"milliseconds":                 {map[string]string{"retry-after-ms": "5998", "Retry-After": "6"}, slow, 5998 * time.Millisecond},
		"milliseconds with a fraction": {map[string]string{"retry-after-ms": "12.5"}, slow, 12500 * time.Microsecond},
		"seconds":                      {map[string]string{"Retry-After": "7"}, slow, 7 * time.Second},
		"seconds with a fraction":      {map[string]string{"Retry-After": " 2.5 "}, slow, 2500 * time.Millisecond},
		"date":                         {map[string]string{"Retry-After": at.Add(90 * time.Second).Format(http.TimeFormat)}, slow, 90 * time.Second},
		"date in the past":             {map[string]string{"Retry-After": at.Add(-time.Hour).Format(http.TimeFormat)}, slow, time.Second},
		"zero":                         {map[string]string{"Retry-After": "0"}, slow, time.Second},
		"zero milliseconds":            {map[string]string{"retry-after-ms": "0"}, slow, time.Second},
		"negative":                     {map[string]string{"Retry-After": "-5"}, slow, time.Second},
		"nonsense":                     {map[string]string{"Retry-After": "soon"}, slow, 0},
		"not a number":                 {map[string]string{"Retry-After": "NaN"}, slow, 0},
		"without end":                  {map[string]string{"Retry-After": "Inf"}, slow, maxWait},
		"with a unit":                  {map[string]string{"Retry-After": "1m30s"}, slow, 90 * time.Second},
		"in words":                     {map[string]string{"Retry-After": "7 seconds"}, slow, 7 * time.Second},
		"ISO 8601":                     {map[string]string{"Retry-After": "PT7S"}, slow, 7 * time.Second},
		"RFC 3339":                     {map[string]string{"Retry-After": at.Add(9 * time.Second).Format(time.RFC3339)}, slow, 9 * time.Second},
		"epoch":                        {map[string]string{"Retry-After": strconv.FormatInt(at.Unix()+9, 10)}, slow, 9 * time.Second},
		"epoch in milliseconds":        {map[string]string{"Retry-After": strconv.FormatInt(at.UnixMilli()+9000, 10)}, slow, 9 * time.Second},
		"huge":                         {map[string]string{"Retry-After": "1e300"}, slow, maxWait},
		"header before body":           {map[string]string{"Retry-After": "3"}, google(`{"retryDelay":"39.5s"}`), 3 * time.Second},

		"RetryInfo":                {nil, google(`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"39.5s"}`), 39500 * time.Millisecond},
		"RetryInfo as a number":    {nil, google(`{"retryDelay":39.5}`), 39500 * time.Millisecond},
		"RetryInfo without a unit": {nil, google(`{"retryDelay":"39.5"}`), 39500 * time.Millisecond},
		"quotaResetDelay outside":  {nil, `{"error":{"message":"slow","metadata":{"quotaResetDelay":"373.8ms"}}}`, 373800 * time.Microsecond},
		"RetryInfo in a list":      {nil, "[" + google(`{"retryDelay":"34s"}`) + "]", 34 * time.Second},
		"metadata":                 {nil, `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"q","details":[{"metadata":{"quotaResetDelay":"373.8ms"}}]}}`, 373800 * time.Microsecond},
		"RetryInfo before message": {nil, google(`{"reason":"x"},{"retryDelay":"37s"}`), 37 * time.Second},
		"message after RetryInfo":  {nil, google(`{"retryDelay":"later"}`), 9 * time.Second},

		"message":             {nil, says("Please retry in 26.6s."), 26600 * time.Millisecond},
		"message 7.66s":       {nil, says("Rate limit reached. Please try again in 7.66s. Visit us."), 7660 * time.Millisecond},
		"message 1m2.5s":      {nil, says("Please try again in 1m2.5s."), 62500 * time.Millisecond},
		"message 850ms":       {nil, says("Please try again in 850ms."), 850 * time.Millisecond},
		"message 14m24s":      {nil, says("Please try again in 14m24s"), 14*time.Minute + 24*time.Second},
		"message 2h3m4s":      {nil, says("Try again in 2h3m4s"), 2*time.Hour + 3*time.Minute + 4*time.Second},
		"message in words":    {nil, says("Please retry after 20 seconds."), 20 * time.Second},
		"message two words":   {nil, says("try again in 1 minute 5 seconds"), 65 * time.Second},
		"message one minute":  {nil, says("try again in 5m"), 5 * time.Minute},
		"message no unit":     {nil, says("try again in 5 apples"), 0},
		"message no number":   {nil, says("try again in seconds"), 0},
		"message later":       {nil, says("try again later"), 0},
		"message bad number":  {nil, says("try again in 1.2.3s"), 0},
		"message of a day":    {nil, says("All quota is used. It will reset after 26h10m5s."), 26*time.Hour + 10*time.Minute + 5*time.Second},
		"message of days":     {nil, says("Your quota resets in 2 days, 3 hours and 4 minutes"), 51*time.Hour + 4*time.Minute},
		"message an hour":     {nil, says("Try again in an hour."), time.Hour},
		"message a date":      {nil, says("Limit reached, resets at " + at.Add(time.Hour).Format(time.RFC3339) + "."), time.Hour},
		"message a day":       {nil, says("You will regain access on 2026-12-01 at 00:00 UTC."), 14 * time.Hour},
		"message now":         {nil, says("Try again in 0s"), time.Second},
		"message wait":        {nil, says("Slow down. Please wait 8 seconds before the next request"), 8 * time.Second},
		"message second try":  {nil, says("Try again in a moment, or retry after 5s"), 5 * time.Second},
		"message in an error": {nil, `{"error":{"code":429,"message":"{\"error\":{\"message\":\"try again in 3s\"}}"}}`, 3 * time.Second},

		"member of the error":       {nil, `{"error":{"message":"slow","retry_after":120}}`, 2 * time.Minute},
		"member of the body":        {nil, `{"message":"slow","retry_after_ms":1500}`, 1500 * time.Millisecond},
		"member as digits":          {nil, `{"error":{"message":"slow","retryAfter":"7.5"}}`, 7500 * time.Millisecond},
		"member of the detail":      {nil, `{"detail":{"message":"slow","retry_after":15}}`, 15 * time.Second},
		"member as duration":        {nil, `{"error":{"message":"slow","retryDelay":"1m30s"}}`, 90 * time.Second},
		"member as words":           {nil, `{"error":"slow","retry_in":"2 minutes"}`, 2 * time.Minute},
		"member as ISO duration":    {nil, `{"error":{"message":"slow","retryAfter":"PT1H30M"}}`, 90 * time.Minute},
		"member as date":            {nil, `{"error":{"message":"slow"},"retryAfter":"` + at.Add(time.Minute).Format(time.RFC3339) + `"}`, time.Minute},
		"member as local date":      {nil, `{"error":{"message":"slow"},"reset_at":"` + at.Add(time.Minute).Format(time.DateTime) + `"}`, time.Minute},
		"member as date of HTTP":    {nil, `{"error":{"message":"slow","resetsAt":"` + at.Add(time.Minute).Format(http.TimeFormat) + `"}}`, time.Minute},
		"member as epoch":           {nil, `{"error":{"message":"slow","resets_at":` + epoch(time.Hour, time.Second) + `}}`, time.Hour},
		"member of seconds":         {nil, `{"error":{"type":"usage_limit_reached","message":"slow","resets_in_seconds":3601}}`, time.Hour + time.Second},
		"member of metadata":        {nil, `{"error":{"message":"slow","metadata":{"retry_after_seconds":4}}}`, 4 * time.Second},
		"member of nothing":         {nil, `{"error":{"message":"slow","retry_after":0}}`, time.Second},
		"member without sense":      {nil, `{"error":{"message":"slow","retry_after":null,"resets_at":"soon","retry_in":[1],"retry_delay":true}}`, 0},
		"member of the error first": {nil, `{"error":{"message":"slow","retry_after":1},"retry_after":9}`, time.Second},
		"member before message":     {nil, `{"error":{"message":"try again in 9s","retry_after":2}}`, 2 * time.Second},
		"header before member":      {map[string]string{"Retry-After": "3"}, `{"error":{"message":"slow","retry_after":9}}`, 3 * time.Second},

		"reset as duration": {map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "2m59.56s"}, slow, 179560 * time.Millisecond},
		"reset as seconds":  {map[string]string{"x-ratelimit-remaining-requests-day": "0", "x-ratelimit-reset-requests-day": "33011.38"}, slow, 33011380 * time.Millisecond},
		"reset as time": {
			map[string]string{"anthropic-ratelimit-input-tokens-remaining": "0", "anthropic-ratelimit-input-tokens-reset": at.Add(17 * time.Second).Format(time.RFC3339)},
			slow, 17 * time.Second,
		},
		"reset as epoch":                      {map[string]string{"X-RateLimit-Reset": epoch(time.Hour, time.Second)}, slow, time.Hour},
		"reset as epoch milliseconds":         {map[string]string{"X-RateLimit-Reset": epoch(time.Hour, time.Millisecond)}, slow, time.Hour},
		"reset in the past":                   {map[string]string{"X-RateLimit-Reset": epoch(-time.Hour, time.Second)}, slow, time.Second},
		"exhausted bucket that is full again": {map[string]string{"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "0s"}, slow, time.Second},
		"bucket that is full":                 {map[string]string{"x-ratelimit-remaining-tokens": "100", "x-ratelimit-reset-tokens": "0s"}, slow, 0},
		"reset without sense":                 {map[string]string{"X-RateLimit-Reset": "1e308"}, slow, maxWait},
		"reset not a number":                  {map[string]string{"X-RateLimit-Reset": "NaN"}, slow, 0},
		"reset of the draft":                  {map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "12"}, slow, 12 * time.Second},
		"the exhausted bucket": {map[string]string{
			"x-ratelimit-remaining-requests": "999", "x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7s",
		}, slow, 7 * time.Second},
		"the longest of the exhausted": {map[string]string{
			"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7s",
		}, slow, time.Hour},
		"tokens that do not suffice": {map[string]string{
			"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1h", "x-ratelimit-remaining-tokens": "50", "x-ratelimit-reset-tokens": "7s",
		}, slow, 7 * time.Second},
		"requests that suffice": {map[string]string{"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1h"}, slow, 0},
		"message before reset":  {map[string]string{"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "7s"}, says("try again in 5s"), 5 * time.Second},

		"headers inside the body": {nil, `{"error":{"message":"free-models-per-day","code":429,"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"` + epoch(3*time.Hour, time.Millisecond) + `"}}}}`, 3 * time.Hour},
		"agent's headers":         {nil, `{"info":{"error":{"name":"APIError","data":{"message":"m","statusCode":429,"responseHeaders":{"retry-after":"9"}}}}}`, 9 * time.Second},

		// 10:00 UTC is 02:00 in California: the day ends in 22 hours.
		"day of Google":           {map[string]string{"Retry-After": "12"}, google(`{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"retryDelay":"12s"}`), 22 * time.Hour},
		"day beside minute":       {nil, google(`{"violations":[{"quotaId":"XPerMinute"},{"quotaId":"XPerDay"}]}`), 22 * time.Hour},
		"minute of Google":        {nil, google(`{"violations":[{"quotaId":"XPerMinute"}]},{"retryDelay":"12s"}`), 12 * time.Second},
		"nothing stated":          {nil, slow, 0},
		"more than a day, stated": {map[string]string{"Retry-After": "172800"}, slow, 2 * day}, // the configured maximum is the caller's
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := http.Header{}
			for k, v := range c.header {
				h.Set(k, v)
			}
			v := Of(Answer{Status: http.StatusTooManyRequests, Header: h, Body: []byte(c.body), At: at})
			require.Equal(t, c.want, v.Wait)
			require.Equal(t, c.want > 0, v.Stated)
		})
	}
}

// The switch to and from summer time: the day has 23 or 25 hours.
func TestCalifornianMidnight(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/Los_Angeles")
	require.NoError(t, err)
	for now, want := range map[time.Time]time.Duration{
		time.Date(2026, 3, 8, 0, 0, 0, 0, zone):       23 * time.Hour,
		time.Date(2026, 11, 1, 0, 0, 0, 0, zone):      25 * time.Hour,
		time.Date(2026, 6, 1, 23, 59, 59, 0, zone):    time.Second,
		time.Date(2026, 12, 31, 12, 0, 0, 0, zone):    12 * time.Hour,
		time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC): 24 * time.Hour,
	} {
		require.Equal(t, want, untilCalifornianMidnight(now), now)
	}
}

// A wait of an overloaded upstream is worth knowing; one beside a client's fault is not.
func TestWaitByClass(t *testing.T) {
	t.Parallel()
	h := http.Header{"Retry-After": {"5"}}
	for status, want := range map[int]time.Duration{
		503: 5 * time.Second, 529: 5 * time.Second, 429: 5 * time.Second, 401: 5 * time.Second, 402: 5 * time.Second, 400: 0, 404: 0, 413: 0, 422: 0,
	} {
		require.Equal(t, want, Of(Answer{Status: status, Header: h}).Wait, status)
	}
	// Reset headers come with every answer: they say nothing about an overload.
	h = http.Header{"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"1h"}}
	require.Zero(t, Of(Answer{Status: 503, Header: h}).Wait)
}

// a refusal of a valid key is for the model, unless it is about the account, the project or the region.
func TestScopeOfRefusals(t *testing.T) {
	t.Parallel()
	google := func(message, reason string) string {
		return `{"error":{"code":403,"message":"` + message + `","status":"PERMISSION_DENIED","details":[{"@type":"t","reason":"` + reason + `"}]}}`
	}
	for body, perModel := range map[string]bool{
		google("Generative Language API has not been used in project 123 before or it is disabled.", "SERVICE_DISABLED"): false,
		google("Requests to this API are blocked.", "API_KEY_SERVICE_BLOCKED"):                                           false,
		google("m", "BILLING_DISABLED"): false,
		`{"error":{"code":403,"message":"Your project has been denied access. Please contact support.","status":"PERMISSION_DENIED"}}`: false,
		`{"error":{"message":"Key limit exceeded (daily limit).","code":403}}`:                                                         false,
		`{"error":{"message":"Your organization has been disabled.","code":"x"}}`:                                                      false,
		`{"error":{"message":"m","code":"unsupported_country_region_territory"}}`:                                                      false,
		google("You do not have permission to access tuned model x", "IAM_PERMISSION_DENIED"):                                          true,
		`{"error":{"message":"The project does not have access to the model x","type":"permission_error"}}`:                            true,
	} {
		v := Of(Answer{Status: http.StatusForbidden, Body: []byte(body)})
		require.Equal(t, perModel, v.PerModel, body)
		require.NotEqual(t, NoCooldown, v.Cooldown, body)
	}
}

// The scope of a limit is the model where the provider counts so.
func TestScopeOfLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider, body string
		want           bool
	}{
		"Gemini":              {"gemini", `{"error":{"message":"m"}}`, true},
		"Groq":                {"groq", `{"error":{"message":"m"}}`, true},
		"Google's shape":      {"", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"m"}}`, true},
		"names the model":     {"", `{"error":{"message":"Rate limit reached for alpha-1 in organization org-x","code":"rate_limit_exceeded"}}`, true},
		"unknown":             {"", `{"error":{"message":"m"}}`, false},
		"money":               {"groq", `{"error":{"message":"m","code":"insufficient_quota"}}`, false},
		"free models":         {"openrouter", `{"error":{"message":"Rate limit exceeded: free-models-per-min"}}`, false},
		"day of the model":    {"groq", `{"error":{"message":"Rate limit reached for model x on tokens per day (TPD): Limit 1"}}`, true},
		"plan of the account": {"", `{"type":"error","error":{"message":"usage limit exceeded (2056)","http_code":"429"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Of(Answer{Provider: c.provider, Status: http.StatusTooManyRequests, Body: []byte(c.body)})
			require.Equal(t, QuotaCooldown, v.Cooldown)
			require.Equal(t, c.want, v.PerModel)
		})
	}
}
