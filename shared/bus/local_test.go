package bus_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

// connectLocal gives a connection of a service that shares its process with others.
func connectLocal(t *testing.T, server bus.InProcess, local *bus.Local) *bus.Bus {
	t.Helper()
	b, err := bus.Connect(t.Context(), bus.Config{InProcess: server, Name: t.Name(), Local: local, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close(context.WithoutCancel(t.Context()))) })
	return b
}

// a body goes from service to service without the stream, at each delivery, until it is discarded.
func TestBodiesInTheProcess(t *testing.T) {
	t.Parallel()
	srv, local := natstest.Start(t), bus.NewLocal()
	ingress, worker, alone := connectLocal(t, srv, local), connectLocal(t, srv, local), bustest.Connect(t, srv)
	letRun(t, ingress)
	bustest.LimitWork(t, srv, 16<<10)
	body := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	type delivery struct {
		count uint64
		body  []byte
	}
	got := make(chan delivery, 4)
	consume(t, worker, bus.WorkConfig{Consumer: topology.Analyzer}, func(ctx context.Context, w *bus.Work) {
		if err := w.Forward(ctx, nil); err != nil {
			t.Error(err)
		}
	})
	consume(t, worker, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		got <- delivery{w.Delivery, w.Body}
		if w.Delivery == 1 {
			w.Retry(0)
			return
		}
		if err := w.Discard(ctx); err != nil {
			t.Error(err)
		}
		w.Done()
	})
	require.NoError(t, ingress.PublishWork(t.Context(), request("r", contract.StageReceived, contract.StageEnriched), body))
	for count := uint64(1); count <= 2; count++ {
		d := await.Value(t, got)
		require.Equal(t, count, d.count)
		require.True(t, bytes.Equal(body, d.body))
	}
	// The stream has no room for a body that travels in it.
	require.ErrorIs(t, alone.PublishWork(t.Context(), request("alone"), body), bus.ErrWorkFull)
}

// frames of answers come in order and stay as they came, without the server, until their ingress stops.
func TestAnswersInTheProcess(t *testing.T) {
	t.Parallel()
	srv, local := natstest.Start(t), bus.NewLocal()
	ingress, worker, outside := connectLocal(t, srv, local), connectLocal(t, srv, local), bustest.Connect(t, srv)
	letRun(t, ingress)
	var got []contract.Frame
	replies, err := ingress.SubscribeReplies("i1", func(rid string, msg []byte) {
		for f, err := range contract.Frames(msg) {
			if err != nil || rid != "r" {
				t.Error(rid, err)
			}
			got = append(got, f)
		}
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, replies.Stop()) })
	sent := collectFrames(t, outside)
	answered, stopped := make(chan struct{}), make(chan struct{})
	large := bytes.Repeat([]byte("0123456789"), 20<<10)
	consume(t, worker, bus.WorkConfig{Consumer: topology.Dispatcher}, func(ctx context.Context, w *bus.Work) {
		defer w.Done()
		if w.Delivery > 1 { // it took long
			return
		}
		r := w.OpenReply()
		defer r.Close()
		err := errors.Join(r.Head(contract.Head{Status: 200}), r.Data(ctx, []byte("one")), r.Flush(), r.Data(ctx, []byte("two")), r.Data(ctx, large), r.Flush())
		close(answered)
		<-stopped
		if err = errors.Join(err, r.End(contract.End{}), r.Flush()); err != nil {
			t.Error(err)
		}
	})
	require.NoError(t, ingress.PublishWork(t.Context(), request("r"), nil))
	await.Value(t, answered)
	var body []byte
	for seq, f := range got {
		require.Equal(t, uint64(seq), f.Seq)
		if f.Kind == contract.FrameData {
			body = append(body, f.Payload...)
		}
	}
	require.Equal(t, contract.FrameHead, got[0].Kind)
	require.True(t, bytes.Equal(append([]byte("onetwo"), large...), body))

	require.NoError(t, replies.Stop())
	close(stopped)
	require.Equal(t, contract.FrameEnd, await.Value(t, sent).Kind, "the first frame that the server gets")
}

// a stage finds its input at each delivery, whatever it has made of it.
func TestForwardInTheProcess(t *testing.T) {
	t.Parallel()
	small, large := []byte("{}"), bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	for name, tt := range map[string]struct{ in, edit, out []byte }{
		"small to large":  {small, large, large},
		"large to small":  {large, small, small},
		"large to large":  {large, large[1:], large[1:]},
		"large unchanged": {large, nil, large},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			forwards(t, connectLocal(t, natstest.Start(t), bus.NewLocal()), tt.in, tt.edit, tt.out)
		})
	}
}
