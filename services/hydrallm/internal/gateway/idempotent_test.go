package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

// of a crowd that asks two gateways under one key, whole or streamed, for a model of the configuration or another one, all get the answer of one call, and the turn of
// their session is stored once.
func TestRepeatedRequestIsOneTurn(t *testing.T) {
	t.Parallel()
	const clients = 50
	srv, database, upstream := natstest.StartListening(t), pgtest.New(t), fakellm.Start(t)
	upstream.Handle(counting)
	var gateways []running
	for range 2 {
		s := settings(t, freeport.Port(t), upstream.URL(), upstream.URL())
		s.NATS.URL, s.Sessions.Database = srv.ClientURL(), config.Secret(database)
		gateways = append(gateways, serve(t, s))
	}
	for n, model := range []string{"m", "pb/real-b"} {
		for m, stream := range []bool{false, true} {
			turn := 2*n + m
			body := fmt.Sprintf(`{"model":%q,"stream":%t,"session_id":"s","messages":[{"role":"user","content":"q%d"}]}`, model, stream, turn)
			statuses, answers, errs := make([]int, clients), make([]string, clients), make([]error, clients)
			var asking sync.WaitGroup
			for i := range clients {
				asking.Go(func() {
					statuses[i], answers[i], errs[i] = gateways[i%2].try(t.Context(), http.MethodPost, "/v1/chat/completions", body, "Idempotency-Key", fmt.Sprintf("k%d", turn))
				})
			}
			asking.Wait()
			require.NoError(t, errors.Join(errs...))
			for i, a := range answers {
				require.Equal(t, http.StatusOK, statuses[i], a)
				require.Equal(t, answers[0], a)
			}
			text := gjson.Get(answers[0], "choices.0.message.content").Str
			if stream {
				text = streamed(answers[0])
			}
			require.Equal(t, fmt.Sprintf("%d messages, the last: q%d", 2*turn+1, turn), text)
			require.Len(t, upstream.Requests(), turn+1)
		}
	}
	_, list := gateways[0].do(t, http.MethodGet, "/v1/admin/sessions/s/messages", "", "X-Admin-Key", adminKey)
	require.Equal(t, int64(8), gjson.Get(list, "#").Int())
}
