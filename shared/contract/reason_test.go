package contract_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// the reasons as answers show them.
func TestShowReason(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		contract.ReasonModelHint: "USER_HINT", contract.ReasonTokenCount: "TOKEN_OPTIMIZED", contract.ReasonImagePresent: "MULTIMODAL_ANALYSIS",
		contract.ReasonKeyAvailability: "KEY_AVAILABILITY", contract.ReasonRateLimit: "RATE_LIMIT", "search_required": "SEARCH_REQUIRED", "": "",
	} {
		require.Equal(t, want, contract.ShowReason(reason), reason)
	}
}
