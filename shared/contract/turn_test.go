package contract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// a message keeps its original, also where one original stands for several messages.
func TestMessagesOfTurns(t *testing.T) {
	t.Parallel()
	messages := []contract.Message{
		{Body: []byte(`{"role":"user","content":"a"}`)},
		{Body: []byte(`{"role":"tool","content":"b"}`), Original: []byte(`{"role":"user","content":[1,2]}`)},
		{Body: []byte(`{"role":"user","content":"c"}`), Within: true},
		{Body: []byte(`{"role":"user","content":"d"}`)},
	}
	var turn contract.Turn
	for _, m := range messages {
		turn.Add(m)
	}
	require.Len(t, turn.Originals, 3)
	data, err := json.Marshal(turn)
	require.NoError(t, err)
	var read contract.Turn
	require.NoError(t, json.Unmarshal(data, &read))
	for i, m := range messages {
		require.Equal(t, m, read.Message(i))
	}
}

// endpoints in the ledger.
func TestEndpointOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, contract.EndpointChat, contract.EndpointOf(contract.Chat, contract.SurfaceChat))
	require.Equal(t, contract.EndpointMessages, contract.EndpointOf(contract.Chat, contract.SurfaceMessages))
	require.Equal(t, contract.EndpointEmbeddings, contract.EndpointOf(contract.Embeddings, contract.SurfaceChat))
	require.EqualValues(t, "audio.speech", contract.EndpointOf(contract.Speech, contract.SurfaceChat))
}
