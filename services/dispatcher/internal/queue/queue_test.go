package queue_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/queue"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// hub is a store that tells every set of each change, a while later.
type hub struct {
	mu   sync.Mutex
	sets []*queue.Set
	down bool
	news []func() // that are on their way, in their order
}

const lag = 100 * time.Millisecond // less than what the order is promised for

func (h *hub) Put(_ context.Context, key string, value []byte) error { return h.tell(key, value) }
func (h *hub) Remove(_ context.Context, key string) error            { return h.tell(key, nil) }

func (h *hub) tell(key string, value []byte) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.down {
		return errors.New("down")
	}
	for _, s := range h.sets {
		h.news = append(h.news, func() { s.Take(key, value) })
		time.AfterFunc(lag, h.next)
	}
	return nil
}

func (h *hub) next() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.news[0]()
	h.news = h.news[1:]
}

func (h *hub) cut(down bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.down = down
}

// join makes the queues of another dispatcher.
func (h *hub) join(t *testing.T, owner string) *queue.Set {
	t.Helper()
	s := queue.New(t.Context(), h, queue.Config{Owner: owner}, slog.New(slog.DiscardHandler))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sets = append(h.sets, s)
	return s
}

var limits = queue.Limits{Length: 100, Wait: 40 * time.Second}

// served notes in which order requests get their turn; each leaves when it does, as one that got a slot.
type served struct {
	mu    sync.Mutex
	order []string
	wg    sync.WaitGroup
	slots chan struct{}
}

func newServed(t *testing.T, sets ...*queue.Set) *served {
	t.Helper()
	v := &served{slots: make(chan struct{}, 100)}
	t.Cleanup(func() {
		for _, s := range sets {
			require.NoError(t, s.Close(context.Background()))
		}
		v.wg.Wait()
	})
	return v
}

func (v *served) names() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.order...)
}

// ask waits for a slot as the executor does.
func (v *served) ask(t *testing.T, s *queue.Set, request string, p contract.Priority) {
	t.Helper()
	place, err := s.Enter(queue.Waiter{Request: request, Model: "m", Priority: p, Since: time.Now()}, limits)
	require.NoError(t, err)
	v.wg.Go(func() {
		defer place.Leave()
		for place.Turn(context.Background()) == nil {
			select {
			case <-v.slots:
				v.mu.Lock()
				defer v.mu.Unlock()
				v.order = append(v.order, request)
				return
			default: // somebody else has it
			}
		}
	})
}

// free gives slots back, one after the other.
func (v *served) free(n int) {
	for range n {
		v.slots <- struct{}{}
		<-time.After(time.Second)
	}
}

// there is one order over all dispatchers, and only the first one tries.
func TestOneOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{}
		a, b := h.join(t, "a"), h.join(t, "b")
		v := newServed(t, a, b)
		var want []string
		for i := range 10 {
			name := fmt.Sprint("r", i)
			v.ask(t, []*queue.Set{a, b}[i%3%2], name, "")
			want = append(want, name)
			<-time.After(200 * time.Millisecond)
		}
		require.True(t, a.Busy("m"))
		require.True(t, b.Busy("m"))
		require.False(t, a.Busy("n"))
		for _, s := range []*queue.Set{a, b} {
			lines := s.Lines(3)
			require.Len(t, lines, 1)
			require.Equal(t, 10, lines[0].Waiting)
			require.Len(t, lines[0].First, 3)
			require.Equal(t, "r2", lines[0].First[2].Request)
		}
		require.Equal(t, 10, a.Own("m")+b.Own("m"))
		v.free(10)
		require.Equal(t, want, v.names())
		require.False(t, a.Busy("m"))
		require.False(t, b.Busy("m"))
	})
}

// a priority goes first, and what has waited long enough goes before one that has not.
func TestPrioritiesAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{}
		a, b := h.join(t, "a"), h.join(t, "b")
		v := newServed(t, a, b)
		ask := func(s *queue.Set, name string, p contract.Priority) {
			v.ask(t, s, name, p)
			<-time.After(time.Second)
		}
		ask(a, "low", contract.PriorityLow)
		ask(b, "normal", contract.PriorityNormal)
		ask(a, "other", "")
		ask(b, "high", contract.PriorityHigh)
		v.free(1)
		require.Equal(t, []string{"high"}, v.names())
		// A stream of requests of the highest priority, one a second, of which one in three seconds is served: the lowest comes before those that came
		// a quarter of Limits.Wait later.
		for i := range 45 {
			ask(b, fmt.Sprint("high", i), contract.PriorityHigh)
			if i%3 == 0 {
				v.slots <- struct{}{}
			}
		}
		names := v.names()
		require.Contains(t, names, "low")
		require.Contains(t, names, "normal")
		require.Contains(t, names, "other")
	})
}

// whoever leaves frees its place, there is room for no more than the limit, and for other models.
func TestFullQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{}
		a, b := h.join(t, "a"), h.join(t, "b")
		newServed(t, a, b)
		small := queue.Limits{Length: 2, Wait: time.Minute}
		enter := func(s *queue.Set, request, model string) (*queue.Place, error) {
			p, err := s.Enter(queue.Waiter{Request: request, Model: model, Since: time.Now()}, small)
			<-time.After(time.Second)
			return p, err
		}
		first, err := enter(a, "1", "m")
		require.NoError(t, err)
		second, err := enter(b, "2", "m")
		require.NoError(t, err)
		for _, s := range []*queue.Set{a, b} {
			_, err = enter(s, "3", "m")
			require.ErrorIs(t, err, queue.ErrFull)
		}
		other, err := enter(a, "3", "n")
		require.NoError(t, err)
		second.Leave()
		second.Leave()
		<-time.After(time.Second)
		third, err := enter(a, "4", "m")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("enough"))
		defer cancel()
		<-time.After(time.Hour) // it is renewed as long as it waits
		require.EqualError(t, third.Turn(ctx), "enough")
		require.Equal(t, 2, b.Lines(0)[0].Waiting)
		for _, p := range []*queue.Place{first, third, other} {
			p.Leave()
		}
		<-time.After(time.Second)
		require.Empty(t, b.Lines(1))
	})
}

// what waited at a dispatcher that is dead keeps its place at the one that gets it next, and is in nobody's way when it does not come back.
func TestDeadDispatcher(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dead, h := &hub{}, &hub{}
		a, b := dead.join(t, "a"), h.join(t, "b")
		dead.sets = append(dead.sets, b)
		v := newServed(t, a, b)
		begin := time.Now()
		for _, name := range []string{"comes back", "does not"} {
			_, err := a.Enter(queue.Waiter{Request: name, Model: "m", Since: time.Now()}, limits)
			require.NoError(t, err)
			<-time.After(time.Second)
		}
		v.ask(t, b, "third", "")
		dead.cut(true)
		v.slots <- struct{}{}
		<-time.After(5 * time.Second)
		require.Empty(t, v.names(), "they may live")
		place, err := b.Enter(queue.Waiter{Request: "comes back", Model: "m", Since: begin}, limits)
		require.NoError(t, err)
		require.NoError(t, place.Turn(t.Context()), "it has its place at once")
		require.Equal(t, 3, b.Lines(0)[0].Waiting)
		place.Leave()
		<-time.After(2 * queue.DefaultTTL)
		require.Equal(t, []string{"third"}, v.names())
		dead.cut(false)
	})
}

// while the store is away those of one dispatcher keep their order, and it hears of them all later.
func TestStoreIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{}
		a, b := h.join(t, "a"), h.join(t, "b")
		v := newServed(t, a, b)
		h.cut(true)
		for i := range 4 {
			v.ask(t, a, fmt.Sprint("r", i), "")
			<-time.After(time.Second)
		}
		v.free(1)
		require.Empty(t, b.Lines(0))
		h.cut(false)
		<-time.After(time.Second)
		require.Equal(t, 3, b.Lines(0)[0].Waiting)
		v.free(3)
		require.Equal(t, []string{"r0", "r1", "r2", "r3"}, v.names())
	})
}

// a dispatcher that stops lets go of all who wait, whose places are kept for a while, and lets nobody in.
func TestDismissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &hub{}
		a, b := h.join(t, "a"), h.join(t, "b")
		newServed(t, b)
		place, err := a.Enter(queue.Waiter{Request: "r", Model: "m", Since: time.Now()}, limits)
		require.NoError(t, err)
		<-time.After(time.Second)
		a.Dismiss()
		for place.Turn(t.Context()) == nil { // it may have been its turn before
		}
		require.ErrorIs(t, place.Turn(t.Context()), queue.ErrClosed)
		place.Leave()
		_, err = a.Enter(queue.Waiter{Request: "q", Model: "m", Since: time.Now()}, limits)
		require.ErrorIs(t, err, queue.ErrClosed)
		require.NoError(t, a.Close(t.Context()))
		<-time.After(time.Second)
		require.Equal(t, 1, b.Lines(0)[0].Waiting)
		<-time.After(2 * queue.DefaultTTL)
		require.Empty(t, b.Lines(0))
	})
}

// What is no entry is left out.
func FuzzTake(f *testing.F) {
	f.Add("r", []byte(`{"model":"m","since":1,"rank":2,"owner":"a"}`))
	f.Add("r", []byte(`{"model":"m","owner":"self"}`))
	f.Add("", []byte(`[]`))
	f.Fuzz(func(t *testing.T, request string, value []byte) {
		s := queue.New(t.Context(), nil, queue.Config{Owner: "self"}, slog.New(slog.DiscardHandler))
		defer func() { require.NoError(t, s.Close(t.Context())) }()
		s.Take(request, value)
		for _, l := range s.Lines(1) {
			require.NotEmpty(t, l.Model)
			require.Equal(t, 1, l.Waiting)
		}
		s.Take(request, nil)
		require.Empty(t, s.Lines(0))
	})
}
