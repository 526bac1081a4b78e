package dispatcher_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/query"
	"hydrallm/shared/testkit/fakellm"
)

// each call to a provider and what came of it is kept while the setting is on: counts and ends, no texts and no keys.
func TestCommunicationLog(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.oneUpstream("")+"\nlog: {communication: true}\n")
	p.upstream.Queue(fakellm.Chat("a secret answer"), fakellm.Stream("a secret ", "answer"), fakellm.Error(400, "not so"))
	for i, body := range []string{plainBody, streamBody, plainBody} {
		rid := string(rune('a' + i))
		p.ask(rid, body)
		p.await(rid)
		p.facts.await(rid)
	}
	list, err := query.GetCommLog.Ask(t.Context(), p.bus, query.CommLogs{Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 6)
	no, one, yes := false, 1, true
	for i, stream := range []*bool{&no, &yes, &no} {
		sent, came := list[5-2*i], list[4-2*i]
		require.Equal(t, query.CommEntry{
			At: sent.At, Direction: query.CommRequest, Provider: sent.Provider, RequestID: string(rune('a' + i)),
			Payload: query.CommPayload{Model: "real", Messages: &one, Search: &no, Stream: stream},
		}, sent)
		require.Equal(t, query.CommResponse, came.Direction)
		require.False(t, came.At.Before(sent.At.Time))
		if i == 2 {
			require.Equal(t, 400, came.Payload.Status)
			require.NotEmpty(t, came.Payload.Error)
			continue
		}
		require.Equal(t, []string{"stop"}, came.Payload.FinishReasons)
		require.Empty(t, came.Payload.Error)
		require.NotNil(t, came.Payload.Usage)
	}
	text, err := json.Marshal(list)
	require.NoError(t, err)
	require.NotContains(t, string(text), "secret")
	_, err = query.ClearCommLog.Ask(t.Context(), p.bus, query.None{})
	require.NoError(t, err)
	list, err = query.GetCommLog.Ask(t.Context(), p.bus, query.CommLogs{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list)
}

// nothing is kept while it is off.
func TestCommunicationLogIsOff(t *testing.T) {
	t.Parallel()
	p := setup(t)
	p.start("d", p.oneUpstream(""))
	p.ask("r", plainBody)
	p.await("r")
	p.facts.await("r")
	list, err := query.GetCommLog.Ask(t.Context(), p.bus, query.CommLogs{Limit: 10})
	require.NoError(t, err)
	require.Empty(t, list)
}
