package classify

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fixtures"
)

// row is what must come out for a fixture that holds a failure.
type row struct {
	class    Class
	wait     time.Duration
	unstated bool // the wait is customary, not stated
	cooldown Cooldown
	perModel bool
	breaker  bool
	status   int // for the client, where the class may be final
	message  string
}

func upstream() row {
	return row{class: Upstream, cooldown: OtherCooldown, perModel: true, breaker: true}
}

func innocent(wait time.Duration) row {
	return row{class: Upstream, wait: wait, unstated: true, perModel: true, breaker: true}
}

func limited(c Class, wait time.Duration, perModel bool) row {
	return row{class: c, wait: wait, cooldown: QuotaCooldown, perModel: perModel, breaker: true}
}

func badKey(wait time.Duration) row { return row{class: Auth, wait: wait, cooldown: ForbiddenCooldown} }

func clients(c Class, status int, message string) row {
	return row{class: c, status: status, message: message}
}

func missing(status int, message string) row {
	return row{class: Model, perModel: true, status: status, message: message}
}

// at is the moment at which the answers of the fixtures come.
var at = time.Date(2026, 11, 30, 10, 0, 0, 0, time.UTC)

// rows has one entry for each fixture with a failure.
var rows = map[string]row{
	"openai/error-401.json":               badKey(0),
	"openai/error-403-region.json":        {class: Forbidden, cooldown: ForbiddenCooldown},
	"openai/error-404-model.json":         missing(404, "The model `alpha-9` does not exist or you do not have access to it."),
	"openai/error-400-context.json":       clients(Size, 400, "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."),
	"openai/error-400-param.json":         clients(Client, 400, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."),
	"openai/error-429-rate.json":          limited(Rate, 5998*time.Millisecond, true),
	"openai/error-429-quota.json":         limited(Quota, 0, false),
	"openai/error-429-project-spend.json": limited(Quota, 0, false),
	"openai/error-429-slow-down.json":     {class: Upstream, wait: 2 * time.Second, perModel: true, breaker: true},
	"openai/error-503-overloaded.json":    upstream(),
	"openai/stream-error-event.sse":       upstream(),

	"openai-responses/stream-failed.sse":           limited(Quota, 0, false),
	"openai-responses/stream-ratelimit-failed.sse": limited(Rate, 1500*time.Millisecond, false),

	"anthropic/stream-midstream-error.sse": upstream(),
	"anthropic/stream-early-error.sse":     upstream(),
	"anthropic/error-400.json":             clients(Client, 400, "messages.0.content: Input should be a valid list"),
	"anthropic/error-400-sampling.json":    clients(Client, 400, "temperature: Extra inputs are not permitted"),
	"anthropic/error-400-credit.json":      limited(Quota, 0, false),
	"anthropic/error-400-too-long.json":    clients(Size, 400, "prompt is too long: 210000 tokens > 200000 maximum"),
	"anthropic/error-401.json":             badKey(0),
	"anthropic/error-404.json":             missing(404, "model: beta-9"),
	"anthropic/error-429.json":             limited(Rate, 17*time.Second, true),
	"anthropic/error-429-spend.json":       limited(Quota, 0, false),
	"anthropic/error-529.json":             upstream(),

	"gemini/error-429.json":           limited(Rate, 37*time.Second, true),
	"gemini/error-429-daily.json":     limited(Quota, 22*time.Hour, true),
	"gemini/error-400-key.json":       badKey(0),
	"gemini/error-400-location.json":  {class: Forbidden, cooldown: ForbiddenCooldown},
	"gemini/error-400-signature.json": clients(Client, 400, "Function call is missing a thought_signature in functionCall parts. Additional data, function call `default_api:get_time` , position 2."),
	"gemini/error-403.json":           badKey(0),
	"gemini/error-404.json":           missing(404, "models/gamma-9 is not found for API version v1main, or is not supported for generateContent."),
	"gemini/error-503.json":           upstream(),

	"gemini-native/error-429.json":            limited(Rate, 34400*time.Millisecond, true),
	"gemini-native/stream-malformed-call.sse": {class: BadOutput},

	"groq/stream-midstream-error.sse":       upstream(),
	"groq/error-429-tpm.json":               limited(Rate, 8*time.Second, true),
	"groq/error-429-tpd.json":               limited(Quota, 561600*time.Millisecond, true),
	"groq/error-413.json":                   clients(Size, 413, ""),
	"groq/error-400-tool-use-failed.json":   {class: BadOutput},
	"groq/error-400-decommissioned.json":    missing(400, "The model `old-8b` has been decommissioned and is no longer supported."),
	"groq/error-401.json":                   badKey(0),
	"groq/error-498.json":                   upstream(),
	"cerebras/stream-midstream-error.sse":   upstream(),
	"cerebras/error-429.json":               limited(Rate, 11380*time.Millisecond, true),
	"cerebras/error-429-queue.json":         innocent(2 * time.Second),
	"cerebras/error-404.json":               missing(404, "Model epsilon-9 does not exist or you do not have access to it."),
	"cerebras/error-401.json":               badKey(0),
	"openrouter/stream-midstream-error.sse": upstream(),
	"openrouter/stream-error-first.sse":     {class: Upstream, perModel: true, breaker: true},
	"openrouter/chat-error-200.json":        {class: Upstream, cooldown: OtherCooldown, perModel: true, breaker: true, message: "upstream exploded"},
	"openrouter/error-402.json":             {class: Payment, cooldown: QuotaCooldown, status: 402, message: "Insufficient credits. Add more credits and retry."},
	"openrouter/error-402-inflight.json":    limited(Rate, 3*time.Second, false),
	"openrouter/error-429-free.json":        limited(Quota, time.Second, false), // the reset that it states is over
	"openrouter/error-429-upstream.json":    {class: Upstream, perModel: true, breaker: true},
	"openrouter/error-403-moderation.json":  clients(Client, 400, "Input flagged"), // 403 never reaches the client
	"openrouter/error-404-endpoints.json":   clients(Incapable, 404, "No endpoints found that support tool use."),

	"deepseek/stream-resource.sse":      upstream(),
	"deepseek/error-402.json":           {class: Payment, cooldown: QuotaCooldown, status: 402, message: "Insufficient Balance"},
	"deepseek/error-401.json":           badKey(0),
	"deepseek/error-429.json":           {class: Rate, wait: 5 * time.Second, unstated: true, cooldown: QuotaCooldown, breaker: true},
	"deepseek/error-400-reasoning.json": clients(Client, 400, "The reasoning_content in the thinking mode must be passed back to the API."),

	"mistral/error-422.json":          clients(Client, 422, "Extra inputs are not permitted"),
	"mistral/error-400-toolid.json":   clients(Client, 400, "Tool call id was call_abcdefgh but must be a-z, A-Z, 0-9, with a length of 9."),
	"mistral/error-401.json":          badKey(0),
	"mistral/error-429.json":          {class: Rate, wait: 2 * time.Second, unstated: true, cooldown: QuotaCooldown, breaker: true},
	"mistral/error-429-capacity.json": innocent(0),

	"minimax/error-200-balance.json": limited(Quota, 0, false),
	"minimax/error-200-rate.json":    limited(Rate, 0, false),
	"minimax/error-429.json":         limited(Quota, 0, false),
	"minimax/error-401.json":         badKey(0),

	"ollama/native-error.ndjson":       upstream(),
	"ollama/error-404.json":            missing(404, "model 'kappa:99b' not found"),
	"ollama/error-404-native.json":     missing(404, "model 'kappa:99b' not found"),
	"ollama/error-503-busy.json":       upstream(),
	"llamacpp/stream-legacy-error.sse": upstream(),
	"llamacpp/error-503-loading.json":  {class: Upstream, wait: 5 * time.Second, unstated: true, cooldown: OtherCooldown, perModel: true, breaker: true},
	"llamacpp/error-400-context.json":  clients(Size, 400, "the request exceeds the available context size, try increasing it"),
	"llamacpp/error-401.json":          badKey(0),
	"vllm/stream-midstream-error.sse":  upstream(),
	"vllm/error-400-context.json":      clients(Size, 400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
	"vllm/error-400-legacy.json":       clients(Client, 400, `[{"type":"missing"}]`),
	"vllm/error-404.json":              missing(404, "The model `mu-99b` does not exist."),
	"vllm/error-401.json":              badKey(0),
	"lmstudio/error-200-endpoint.json": upstream(),
	"lmstudio/stream-error.sse":        upstream(),
	"opencode/message-error.json":      limited(Rate, 9*time.Second, false),
	"opencode/message-auth-error.json": badKey(0),
	"opencode/error-404.json":          {class: BadOutput},
	"openclaw/stream-error.sse":        upstream(),
	"openclaw/error-403.json":          {class: Forbidden, cooldown: ForbiddenCooldown, perModel: true},
	"openclaw/error-429-auth.json":     badKey(time.Minute),
	"generic/cloudflare-522.html":      upstream(),
}

// seenByReader are streams whose failure is that they end too early; no single event shows it.
var seenByReader = map[string]bool{"openai/stream-truncated.sse": true, "ollama/stream-hidden-error.sse": true}

func TestFixtures(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, f := range fixtures.All() {
		if p := f.Provider(); p == "mcp" || p == "search" {
			continue // not answers of a model
		}
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			got := verdictOn(f)
			want, ok := rows[f.File]
			if f.Class == "" || seenByReader[f.File] {
				require.False(t, ok, "a row for a fixture without failure")
				require.Equal(t, Success, got.Class, "%+v", got)
				return
			}
			require.True(t, ok, "a fixture with a failure needs a row")
			require.Equal(t, f.Class, string(want.class), "row and index differ")
			requireRow(t, want, got)
		})
		seen[f.File] = true
	}
	for file := range rows {
		require.True(t, seen[file], "row without fixture: %s", file)
	}
}

func requireRow(t *testing.T, want row, got Verdict) {
	t.Helper()
	require.Equal(t, want.class, got.Class, "%+v", got)
	require.Equal(t, want.wait, got.Wait)
	require.Equal(t, want.wait > 0 && !want.unstated, got.Stated)
	require.Equal(t, want.cooldown, got.Cooldown)
	require.Equal(t, want.perModel, got.PerModel)
	require.Equal(t, want.breaker, got.Breaker)
	require.NotEmpty(t, got.Reason)
	require.NotEmpty(t, got.Message)
	if want.status != 0 {
		require.Equal(t, want.status, got.Status)
	}
	if want.message != "" {
		require.Equal(t, want.message, got.Message)
	}
}

// verdictOn gives the first verdict that is no success: on the body, or on an event of the stream.
func verdictOn(f fixtures.Fixture) Verdict {
	a := Answer{Provider: f.Provider(), Status: f.Status, Header: f.Header, Body: f.Body, At: at}
	if f.Kind() == "json" || f.Kind() == "html" {
		return Of(a)
	}
	a.Event = true
	for _, data := range events(f) {
		a.Body = data
		if v := Of(a); v.Class != Success {
			return v
		}
	}
	return Verdict{Class: Success}
}

// events splits a stream in the plainest way that the fixtures allow.
func events(f fixtures.Fixture) (data [][]byte) {
	if f.Kind() == "ndjson" {
		return bytes.Split(bytes.TrimSpace(f.Body), []byte("\n"))
	}
	var event []string
	for line := range strings.SplitSeq(strings.ReplaceAll(string(f.Body), "\r\n", "\n")+"\n", "\n") {
		name, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && len(event) > 0:
			data, event = append(data, []byte(strings.Join(event, "\n"))), nil
		case name == "data" || name == "error":
			event = append(event, strings.TrimPrefix(value, " "))
		}
	}
	return data
}

// A stream of sound events must not cost a JSON pass each.
func BenchmarkOfEvent(b *testing.B) {
	a := Answer{Status: http.StatusOK, Event: true, Body: []byte(`{"id":"c1","object":"chat.completion.chunk","created":1790000000,"model":"m",` +
		`"choices":[{"index":0,"delta":{"content":" lamp"},"logprobs":null,"finish_reason":null}],"system_fingerprint":"fp"}`)}
	b.ReportAllocs()
	b.SetBytes(int64(len(a.Body)))
	for b.Loop() {
		if Of(a).Class != Success {
			b.Fatal("not a success")
		}
	}
}
