package execute

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/telemetry"
)

// Figures of upstream calls as OpenTelemetry's semantic conventions for generative AI have them.

// callKey is the labels of the duration of a call.
type callKey struct{ operation, provider, model, failure string }

// tokensKey is the labels of the tokens of a call.
type tokensKey struct{ operation, provider, model, kind string }

// genAI are the histograms with their members in use.
type genAI struct {
	models *telemetry.ModelNames
	calls  *telemetry.Observers[callKey]
	tokens *telemetry.Observers[tokensKey]
}

// newGenAI registers the histograms. known tells the models of providers that have labels of their own.
func newGenAI(reg prometheus.Registerer, known func(provider, model string) bool) genAI {
	calls := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_client_operation_duration_seconds", Help: "Duration of upstream calls, from sending to the last byte.", Buckets: telemetry.GenAISeconds,
	}, []string{telemetry.LabelOperation, telemetry.LabelProvider, telemetry.LabelRequestModel, telemetry.LabelErrorType})
	tokens := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_client_token_usage", Help: "Tokens of upstream calls, as providers count them.", Buckets: telemetry.GenAITokens,
	}, []string{telemetry.LabelOperation, telemetry.LabelProvider, telemetry.LabelRequestModel, telemetry.LabelTokenType})
	reg.MustRegister(calls, tokens)
	return genAI{
		models: telemetry.NewModelNames(known),
		calls: telemetry.NewObservers(calls, func(k callKey) []string {
			return []string{k.operation, k.provider, k.model, k.failure}
		}),
		tokens: telemetry.NewObservers(tokens, func(k tokensKey) []string {
			return []string{k.operation, k.provider, k.model, k.kind}
		}),
	}
}

// expect shows the figures of a model as 0.
func (g *genAI) expect(operation, provider, model string) {
	model = g.models.Label(provider, model)
	g.calls.Of(callKey{operation, provider, model, ""})
	for _, kind := range []string{telemetry.TokensIn, telemetry.TokensOut} {
		g.tokens.Of(tokensKey{operation, provider, model, kind})
	}
}

// call takes in a call that was made.
func (g *genAI) call(operation, provider, model string, v classify.Verdict, used stream.Usage, took time.Duration) {
	model = g.models.Label(provider, model)
	failure := ""
	if v.Class != classify.Success {
		failure = string(v.Class)
	}
	g.calls.Of(callKey{operation, provider, model, failure}).Observe(took.Seconds())
	if used.Prompt == 0 && used.Completion == 0 { // nobody has counted them
		return
	}
	g.tokens.Of(tokensKey{operation, provider, model, telemetry.TokensIn}).Observe(float64(used.Prompt))
	g.tokens.Of(tokensKey{operation, provider, model, telemetry.TokensOut}).Observe(float64(used.Completion))
}
