package bus

import (
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/topology"
)

// sending is a reply that has sent n messages of a size, each of which is a frame.
func sending(u *Bus, n, size int) *Reply {
	r := &Reply{bus: u, credit: newCredit()}
	for range n {
		r.send(size)
	}
	return r
}

func (r *Reply) send(size int) {
	r.buf = make([]byte, size)
	r.seq++
	r.sent += uint64(size)
	r.keep()
	r.buf = nil
}

// what the client has taken is not kept, what it may lack is, and of an answer that grows beyond that nothing is.
func TestWhatIsKeptOfAnAnswer(t *testing.T) {
	t.Parallel()
	var b Bus
	r := sending(&b, Window/maxFrame, maxFrame)
	require.Equal(t, int64(Window), b.unheard.bytes.Load())
	for range 100 {
		r.credit.grant(r.sent - Window)
		r.send(maxFrame)
		require.LessOrEqual(t, b.unheard.bytes.Load(), int64(maxKept))
		require.GreaterOrEqual(t, r.kept.size, Window)
	}
	r.done, r.buf = true, []byte("the end, which is not sent yet")
	for range 2 {
		require.False(t, b.unheard.report()[r].ended)
	}
	r.buf = nil
	require.True(t, b.unheard.report()[r].ended)
	for range maxKept / maxFrame { // nothing of it is taken
		r.send(maxFrame)
	}
	require.Zero(t, b.unheard.bytes.Load())
	require.Empty(t, b.unheard.all())
	r.send(1)
	require.Zero(t, b.unheard.bytes.Load())
}

// all answers together are bounded, too.
func TestWhatIsKeptOfAllAnswers(t *testing.T) {
	t.Parallel()
	var b Bus
	for range 2 * maxUnheard / maxKept {
		sending(&b, 1, maxKept)
	}
	require.Equal(t, int64(maxUnheard), b.unheard.bytes.Load())
	require.Len(t, b.unheard.all(), maxUnheard/maxKept)
	require.True(t, b.unheard.has(""))
	for _, r := range b.unheard.all() {
		r.Close() // without an end nobody awaits what was sent
	}
	require.Zero(t, b.unheard.bytes.Load())
	require.Empty(t, b.unheard.all())
}

// a server that stands still is left, and the next one found, before an ingress takes the silence of its workers for their death.
func TestAStalledServerIsLeftSoon(t *testing.T) {
	t.Parallel()
	require.Less(t, (maxPings+1)*pingInterval+2*topology.AckWait/3, 2*topology.AckWait)
}
