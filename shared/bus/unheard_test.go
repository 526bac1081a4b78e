package bus_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/faultbus"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// reader is an ingress that puts answers together and says what it lacks.
type reader struct {
	bustest.Owner

	mu      sync.Mutex
	next    map[string]uint64
	answers map[string][]byte
	ended   map[string]bool
}

func (r *reader) take(rid string, msg []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for f, err := range contract.Frames(msg) {
		if err != nil || f.Seq != r.next[rid] {
			continue
		}
		r.next[rid]++
		if f.Kind == contract.FrameData {
			r.answers[rid] = append(r.answers[rid], f.Payload...)
		}
		r.ended[rid] = f.Kind == contract.FrameEnd
	}
}

func (r *reader) Alive(_ string, s contract.Sign) (h contract.Heard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next := r.next[s.RequestID]; next < s.Sent {
		h.Lacks, h.From = true, next
	}
	return h
}

func (r *reader) all(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	ended := 0
	for _, over := range r.ended {
		if over {
			ended++
		}
	}
	return ended == n
}

// whichever frames are lost, each answer arrives as a whole, in order, by a worker that has finished long ago or still writes, and nothing is kept
// of it afterwards.
func TestWhateverIsLostArrives(t *testing.T) {
	t.Parallel()
	url := natstest.StartListening(t).ClientURL()
	lossy := faultbus.Start(t, url, 7, faultbus.Rule{Subject: "hydra.v1.reply.>", Loss: 0.3})
	front, worker := bustest.Dial(t, url), bustest.Dial(t, lossy.URL())
	r := &reader{next: map[string]uint64{}, answers: map[string][]byte{}, ended: map[string]bool{}}
	replies, err := front.SubscribeReplies("i1", r.take)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, replies.Stop()) })
	owner, err := front.ServeOwner("i1", r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, owner.Stop()) })
	const requests, parts = 20, 8
	large := bytes.Repeat([]byte("0123456789"), 2000)
	c, err := worker.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: requests}, func(ctx context.Context, w *bus.Work) {
		defer w.Done()
		reply := w.OpenReply()
		defer reply.Close()
		_ = reply.Head(contract.Head{Status: 200})
		for range parts {
			_ = reply.Data(ctx, large)
			_ = reply.Flush()
		}
		_ = reply.End(contract.End{})
		_ = reply.Flush()
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	for i := range requests {
		require.NoError(t, front.PublishWork(t.Context(), request(fmt.Sprint("r", i)), nil))
	}
	await.True(t, func() bool { return r.all(requests) }, "all answers are whole")
	require.Positive(t, lossy.Lost())
	for rid, answer := range r.answers {
		require.Equal(t, bytes.Repeat(large, parts), answer, rid)
	}
	await.True(t, func() bool { answers, size := worker.Kept(); return answers == 0 && size == 0 }, "nothing is kept")
}

// with a server in the same process nothing is lost, and nothing kept.
func TestNothingIsKeptInOneProcess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	require.False(t, b.Repairs())
	kept := make(chan int64, 1)
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 1}, func(_ context.Context, w *bus.Work) {
		defer w.Done()
		reply := w.OpenReply()
		defer reply.Close()
		_ = reply.End(contract.End{})
		_ = reply.Flush()
		_, size := b.Kept()
		kept <- size
	})
	require.NoError(t, err)
	defer startstoptest.Stop(t, c)
	require.NoError(t, b.PublishWork(t.Context(), request("r"), nil))
	require.Zero(t, await.Value(t, kept))
}
