package presence

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A dispatcher is there while it renews its entry; one that died is missed after a while, one that stopped at once.
func TestPresence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &Watch{seen: map[string]time.Time{}}
		require.False(t, w.Present())
		for range 10 {
			w.update(bus.Entry{Key: "dispatcher.a"})
			<-time.After(Fresh / 2)
			require.True(t, w.Present())
		}
		<-time.After(Fresh)
		require.False(t, w.Present(), "it has died")
		require.Empty(t, w.seen)
		w.update(bus.Entry{Key: "dispatcher.a"})
		w.update(bus.Entry{Key: "dispatcher.b"})
		w.update(bus.Entry{Key: "dispatcher.a", Deleted: true})
		require.True(t, w.Present())
		w.update(bus.Entry{Key: "dispatcher.b", Deleted: true})
		require.False(t, w.Present())
	})
}
