package topology

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/natstest"
)

// only the leader's word counts as an answer, and errors are those of the server.
func TestRead(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		answer string
		known  bool
		err    error
	}{
		"a single server":                  {`{"config":{"name":"S"}}`, true, nil},
		"the leader":                       {`{"config":{"name":"S"},"cluster":{"leader":"n1"}}`, true, nil},
		"a member without a leader":        {`{"config":{"name":"S"},"cluster":{"name":"c","replicas":[{"name":"n2"}]}}`, false, nil},
		"a member that knows of no leader": {`{"error":{"code":503,"err_code":10008,"description":"JetStream system temporarily unavailable"}}`, false, nil},
		"nothing of that name":             {`{"error":{"code":404,"err_code":10059,"description":"stream not found"}}`, false, jetstream.ErrStreamNotFound},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var info jetstream.StreamInfo
			known, err := read([]byte(tt.answer), &info)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, tt.known, known)
			if known {
				require.Equal(t, "S", info.Config.Name)
			}
		})
	}
	_, err := read([]byte("nonsense"), &struct{}{})
	require.Error(t, err)
}

// a question is put again until it is answered, and an answer to an earlier time is one.
func TestAskAgain(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect("", nats.InProcessServer(natstest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	var asked []string
	_, err = nc.Subscribe("asked", func(m *nats.Msg) {
		if asked = append(asked, m.Reply); len(asked) == 3 {
			_ = nc.Publish(asked[0], []byte(`{"error":{"code":503,"err_code":10008}}`))
			_ = nc.Publish(asked[0], []byte(`{"value":7}`))
		}
	})
	require.NoError(t, err)
	var answer struct{ Value int }
	require.NoError(t, ask(t.Context(), nc, "asked", nil, &answer))
	require.Equal(t, 7, answer.Value)

	err = ask(t.Context(), nc, "nobody", nil, &answer)
	require.ErrorIs(t, err, ErrNoAnswer)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, ask(ctx, nc, "nobody", nil, &answer), context.Canceled)
	nc.Close()
	require.ErrorIs(t, ask(t.Context(), nc, "asked", nil, &answer), nats.ErrConnectionClosed)
}

// What a stream has on a subject is asked of its leader.
func TestHasFrom(t *testing.T) {
	t.Parallel()
	nc, err := nats.Connect("", nats.InProcessServer(natstest.Start(t)))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Storage: jetstream.MemoryStorage})
	require.NoError(t, err)
	for _, subj := range []string{"s.a.1", "s.b.1"} {
		_, err = js.Publish(t.Context(), subj, nil)
		require.NoError(t, err)
	}
	for question, want := range map[string]bool{"s.a.*": false, "s.b.*": true, "s.>": true, "s.c.*": false} {
		has, err := HasFrom(t.Context(), nc, "S", question, 2)
		require.NoError(t, err)
		require.Equal(t, want, has, question)
	}
	_, err = HasFrom(t.Context(), nc, "none", "s.>", 1)
	require.ErrorIs(t, err, jetstream.ErrStreamNotFound)
}
