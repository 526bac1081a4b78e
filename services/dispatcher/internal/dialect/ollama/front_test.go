package ollama

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/systemcontext"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// the window that is asked for has room for the block at the front of the prompt.
func TestWindowHoldsTheSystemContext(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en", "ko"} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			c := systemcontext.New(&config.Config{Server: config.Server{Locale: locale}, Sessions: config.Sessions{SystemContext: true}})
			block := c.Message(&contract.Request{Operation: contract.Chat, Decision: &contract.Decision{Provider: "ollama"}}, time.Now())
			require.NotNil(t, block)
			req, err := openai.ScanRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
			require.NoError(t, err)
			plain, fronted := req.AppendUpstream(nil, openai.Rewrite{}), req.AppendUpstream(nil, openai.Rewrite{Front: block})
			require.GreaterOrEqual(t, int64(estimate(fronted)-estimate(plain)), openai.MessageTokens(block))
		})
	}
}
