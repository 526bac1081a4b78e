package bus_test

import (
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// The server that is asked for a bucket may learn later than others of a cluster that it is there.
func TestBucketThatAppears(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	b := bustest.Connect(t, srv)
	nc, err := nats.Connect("", nats.InProcessServer(srv))
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	require.NoError(t, js.DeleteKeyValue(t.Context(), subject.SettingsBucket))
	asked, err := nc.SubscribeSync("$JS.API.STREAM.INFO.KV_" + subject.SettingsBucket)
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	opened := make(chan error, 1)
	go func() {
		_, err := b.Bucket(t.Context(), subject.SettingsBucket)
		opened <- err
	}()
	for range 2 { // the second time it knows the first answer
		_, err = asked.NextMsg(await.Limit)
		require.NoError(t, err)
	}
	_, err = js.CreateKeyValue(t.Context(), jetstream.KeyValueConfig{Bucket: subject.SettingsBucket})
	require.NoError(t, err)
	require.NoError(t, await.Value(t, opened))
}
