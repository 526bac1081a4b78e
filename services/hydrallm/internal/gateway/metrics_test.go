package gateway_test

import (
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// what is measured is described, and what is described is there from the start, so that alerts have something to compare.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	a := fakellm.Start(t)
	a.Handle(fakellm.Talk("hi"))
	x := serve(t, configured(t, freeport.Port(t), `
providers: [{id: pa, url: "`+a.URL()+`/v1"}, {id: groq, url: "`+a.URL()+`/v1", keys: [gsk_one, gsk_two]}]
upstreams: [{id: a, provider: pa, model: real-a}, {id: idle, provider: pa, model: real-b}]
models: [{name: m, upstreams: [a], queue: {length: 1}}, {name: n, upstreams: [idle]}]
routing: {priority: [groq], fast: [groq], large: groq, final_fallback: "", aliases: {}}
`))
	status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	status, answer = x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	status, text := x.do(t, http.MethodGet, "/metrics", "")
	require.Equal(t, http.StatusOK, status)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	require.Empty(t, problems)

	page, err := os.ReadFile("../../../../docs/operations.md")
	require.NoError(t, err)
	documented := map[string]bool{}
	for _, name := range regexp.MustCompile("`(hydrallm_[a-z_]+|gen_ai_(?:client|server)_[a-z_]+)").FindAllStringSubmatch(string(page), -1) {
		documented[strings.TrimSuffix(name[1], "_count")] = true // a recipe names what to look at of a histogram
	}
	for _, ofKeys := range []string{"hydrallm_client_requests_total", "hydrallm_client_tokens_total"} { // there when a client has a key with a name
		delete(documented, ofKeys)
	}
	measured := map[string]bool{}
	for _, name := range regexp.MustCompile(`(?m)^# TYPE ((?:hydrallm|gen_ai)_\w+)`).FindAllStringSubmatch(text, -1) {
		measured[name[1]] = true
	}
	require.Equal(t, slices.Sorted(maps.Keys(measured)), slices.Sorted(maps.Keys(documented)))
	for _, series := range []string{
		`hydrallm_upstream_attempts_total{class="auth",upstream="idle"} 0`, `hydrallm_channels_skipped_total{reason="no_key",upstream="idle"} 0`,
		`hydrallm_breaker_transitions_total{to="open",upstream="idle"} 0`, `gen_ai_client_token_usage_sum{gen_ai_operation_name="chat",gen_ai_provider_name="pa",gen_ai_request_model="real-b",gen_ai_token_type="input"} 0`,
		`hydrallm_analyzer_decisions_total{reason="key_availability"} 0`, `hydrallm_session_writer_facts_poisonous_total{kind="usage"} 0`,
		`hydrallm_keys{provider="groq",state="usable"} 2`, `hydrallm_keys{provider="groq",state="resting"} 0`,
		`hydrallm_stream_gate_total{outcome="error"} 0`, `hydrallm_failovers_total{class="upstream"} 0`,
		`hydrallm_dead_letters_total{stage="dispatcher"} 0`, `hydrallm_breaker_open{upstream="idle"} 0`,
		`hydrallm_key_rests_total{class="quota",provider="groq"} 0`, `hydrallm_stage_in_flight{stage="enricher"} 0`,
		`gen_ai_server_request_duration_seconds_count{error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="pa",gen_ai_request_model="m",gen_ai_response_model="real-a"} 2`,
		`gen_ai_server_time_to_first_token_seconds_count{gen_ai_operation_name="chat",gen_ai_provider_name="pa",gen_ai_request_model="m",gen_ai_response_model="real-a"} 1`,
		`gen_ai_client_operation_duration_seconds_count{error_type="",gen_ai_operation_name="chat",gen_ai_provider_name="pa",gen_ai_request_model="real-a"} 2`,
	} {
		require.Contains(t, text, series+"\n")
	}
}
