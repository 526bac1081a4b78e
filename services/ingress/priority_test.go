package ingress_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
)

// a request has the priority that its header asks for, but none above that of its client's key.
func TestPriority(t *testing.T) {
	t.Parallel()
	seen := make(chan contract.Priority, 1)
	g, _ := twoFor(t, nil, func(ctx context.Context, r *reply) {
		seen <- r.work.Request.Priority
		echo(ctx, r)
	})
	asked := func(header ...string) contract.Priority {
		t.Helper()
		a := g.chat(chatBody, header...)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		return <-seen
	}
	require.Empty(t, asked())
	for _, p := range []contract.Priority{contract.PriorityHigh, contract.PriorityNormal, contract.PriorityLow} {
		require.Equal(t, p, asked("X-Priority", string(p)))
	}
	for _, wrong := range []string{"urgent", "HIGH", "1", "high, low"} {
		a := g.chat(chatBody, "X-Priority", wrong)
		require.Equal(t, http.StatusBadRequest, a.StatusCode)
		require.Equal(t, "X-Priority", gjson.Get(a.body, "error.param").Str)
	}
	require.Equal(t, http.StatusBadRequest, g.post(clientKeysPath, `{"name":"k","priority":"urgent"}`).StatusCode)
	normal := []string{"Authorization", "Bearer " + g.makeKey("k", `"priority":"normal"`).Key}
	require.Equal(t, contract.PriorityNormal, asked(normal...))
	require.Equal(t, contract.PriorityNormal, asked(append(normal, "X-Priority", "high")...))
	require.Equal(t, contract.PriorityLow, asked(append(normal, "X-Priority", "low")...))
}
