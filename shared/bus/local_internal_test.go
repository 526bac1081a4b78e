package bus

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// what is kept is what was given, is bounded, and goes when it is discarded or its time is over.
func TestLocalBodies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLocal()
		body := bytes.Repeat([]byte("a"), localFrom)
		require.False(t, l.put("short", body[1:]))
		require.True(t, l.put("a", body))
		clear(body)
		require.Equal(t, bytes.Repeat([]byte("a"), localFrom), l.get("a"), "the caller uses its buffer again")

		require.True(t, l.put("a", body), "a repetition takes the place of the first one")
		require.True(t, l.put("b", body))
		require.Equal(t, 2*localFrom, l.size)
		l.discard("a")
		l.discard("a")
		l.discard("unknown")
		require.Nil(t, l.get("a"))
		require.Equal(t, localFrom, l.size)
		require.Equal(t, 1, l.order.Len())
		for range 3 {
			require.True(t, l.put("c", body))
			l.discard("c")
		}
		require.Equal(t, 1, l.order.Len(), "nothing is left of what is gone, also behind what stays")

		<-time.After(localLife)
		half := make([]byte, localBytes/2)
		require.True(t, l.put("c", half))
		require.NotNil(t, l.get("b"))
		require.False(t, l.put("d", half), "there is no room")
		<-time.After(time.Nanosecond)
		require.True(t, l.put("d", half), "the oldest one is over")
		require.Nil(t, l.get("b"))
		require.Len(t, l.bodies, 2)
		l.discard("d")
		l.discard("c")
		require.Zero(t, l.size)
		require.Empty(t, l.bodies)
		require.Zero(t, l.order.Len())
	})
	var none *Local
	require.False(t, none.put("a", make([]byte, localFrom)))
	require.Nil(t, none.get("a"))
	none.discard("a")
}

// what waits on disk has its body with it.
func TestWhichBodiesTravel(t *testing.T) {
	t.Parallel()
	b := &Bus{maxInline: 1 << 20, local: NewLocal()}
	body := make([]byte, localFrom)
	for name, tt := range map[string]struct {
		background bool
		body       []byte
		travels    bool
	}{
		"large":                   {false, body, false},
		"small":                   {false, body[1:], true},
		"large in the background": {true, body, true},
	} {
		req := &contract.Request{ID: name, Slip: contract.Slip{contract.StageEnriched}, Background: tt.background}
		msg, err := b.workMessage(t.Context(), req, tt.body)
		require.NoError(t, err)
		require.Equal(t, tt.travels, msg.Data != nil, name)
		require.Equal(t, tt.travels, first(msg.Header[contract.HeaderBody]) == "", name)
	}
}

// an ingress that has stopped gets nothing more, and one that has begun anew keeps what it gets.
func TestLocalListeners(t *testing.T) {
	t.Parallel()
	l := NewLocal()
	var got []string
	handler := func(name string) ReplyHandler {
		return func(rid string, frames []byte) { got = append(got, name+" "+rid+" "+string(frames)) }
	}
	require.False(t, l.hand("i1", "r", []byte("a")))
	stopFirst := l.listen("i1", handler("first"))
	require.True(t, l.hand("i1", "r", []byte("b")))
	require.False(t, l.hand("i2", "r", []byte("c")))
	stopSecond := l.listen("i1", handler("second"))
	stopFirst()
	require.True(t, l.hand("i1", "r", []byte("d")))
	stopSecond()
	stopSecond()
	require.False(t, l.hand("i1", "r", []byte("e")))
	require.Equal(t, []string{"first r b", "second r d"}, got)

	var none *Local
	none.listen("i1", handler("none"))()
	require.False(t, none.hand("i1", "r", nil))
}
