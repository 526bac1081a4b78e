package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// journal notes what happens to the services of a test, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(line string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, line)
}

// part is a service that does what the test says.
type part struct {
	journal *journal
	name    string
	start   error
	stop    func(context.Context) error
}

func (p *part) Start(context.Context) error {
	p.journal.add("start " + p.name)
	return p.start
}

func (p *part) Stop(ctx context.Context) error {
	p.journal.add("stop " + p.name)
	if p.stop == nil {
		return nil
	}
	return p.stop(ctx)
}

func (p *part) named() lifecycle.Named { return lifecycle.Named{Name: p.name, Service: p} }

var (
	quiet   = slog.New(slog.DiscardHandler)
	errPart = errors.New("part is broken")
)

func TestRunStopsInReverseOrder(t *testing.T) {
	t.Parallel()
	j := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, b := &part{journal: j, name: "a"}, &part{journal: j, name: "b"}
	require.NoError(t, lifecycle.Run(ctx, quiet, time.Second, nil, a.named(), b.named()))
	require.Equal(t, []string{"start a", "start b", "stop b", "stop a"}, j.lines)
}

func TestRunUndoesAPartialStart(t *testing.T) {
	t.Parallel()
	j := &journal{}
	a, b, c := &part{journal: j, name: "a"}, &part{journal: j, name: "b", start: errPart}, &part{journal: j, name: "c"}
	err := lifecycle.Run(t.Context(), quiet, time.Second, nil, a.named(), b.named(), c.named())
	require.ErrorIs(t, err, errPart)
	require.ErrorContains(t, err, "starting b")
	require.Equal(t, []string{"start a", "start b", "stop a"}, j.lines)
}

func TestRunEndsWhenSomethingFails(t *testing.T) {
	t.Parallel()
	j := &journal{}
	fail := make(chan error, 1)
	fail <- errPart
	a := &part{journal: j, name: "a"}
	require.ErrorIs(t, lifecycle.Run(t.Context(), quiet, time.Second, fail, a.named()), errPart)
	require.Equal(t, []string{"start a", "stop a"}, j.lines)
}

// A signal that comes while the process starts ends it as any other would.
func TestRunStoppedWhileStarting(t *testing.T) {
	t.Parallel()
	j := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a, b := &part{journal: j, name: "a"}, &part{journal: j, name: "b", start: fmt.Errorf("connecting: %w", context.Canceled)}
	require.NoError(t, lifecycle.Run(ctx, quiet, time.Second, nil, a.named(), b.named()))
	require.Equal(t, []string{"start a", "start b", "stop a"}, j.lines)
}

func TestRunReportsEveryStopError(t *testing.T) {
	t.Parallel()
	j := &journal{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	errOther := errors.New("other")
	a := &part{journal: j, name: "a", stop: func(context.Context) error { return errPart }}
	b := &part{journal: j, name: "b", stop: func(context.Context) error { return errOther }}
	err := lifecycle.Run(ctx, quiet, time.Second, nil, a.named(), b.named())
	require.ErrorIs(t, err, errPart)
	require.ErrorIs(t, err, errOther)
}

// busy is a part that says what it waits for.
type busy struct{ *part }

func (busy) Busy() string { return "3 answers" }

// a stop that takes its time says what it waits for, and how long it will; a quick one is quiet.
func TestStopSaysWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder // written to by the goroutine of Run, which is this one
		log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		slow := func(context.Context) error {
			time.Sleep(15 * time.Second) //nolint:forbidigo // time of the bubble
			return nil
		}
		j := &journal{}
		door := lifecycle.Named{Name: "door", Service: busy{&part{journal: j, name: "door", stop: slow}}}
		quick, other := &part{journal: j, name: "quick"}, &part{journal: j, name: "other", stop: slow}
		require.NoError(t, lifecycle.Run(ctx, log, time.Minute, nil, other.named(), quick.named(), door))
		require.Equal(t, `level=INFO msg=stopping limit=1m0s
level=INFO msg="stopping: waiting" service=door for="3 answers" left=59s
level=INFO msg="stopping: waiting" service=door for="3 answers" left=49s
level=INFO msg="stopping: waiting" service=other left=44s
level=INFO msg="stopping: waiting" service=other left=34s
`, out.String())
	})
}

// running work gets the soft limit, which the services share; one that comes late still gets a moment.
func TestSoftLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var waits []time.Duration
		untilCancelled := func(ctx context.Context) error {
			begun := time.Now()
			<-ctx.Done()
			waits = append(waits, time.Since(begun))
			return nil
		}
		a := &part{journal: j, name: "a", stop: untilCancelled}
		b := &part{journal: j, name: "b", stop: untilCancelled}
		require.NoError(t, lifecycle.Run(ctx, quiet, 10*time.Second, nil, a.named(), b.named()))
		require.Equal(t, []time.Duration{10 * time.Second, time.Second}, waits)
	})
}

func TestStuckServiceDoesNotBlockTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journal{}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		release := make(chan struct{})
		a := &part{journal: j, name: "a"}
		b := &part{journal: j, name: "b", stop: func(context.Context) error { <-release; return nil }}
		begun := time.Now()
		err := lifecycle.Run(ctx, quiet, 2*time.Second, nil, a.named(), b.named())
		require.ErrorIs(t, err, lifecycle.ErrStuck)
		require.ErrorContains(t, err, "stopping b")
		require.Equal(t, 7*time.Second, time.Since(begun))
		require.Equal(t, []string{"start a", "start b", "stop b", "stop a"}, j.lines)
		close(release)
		synctest.Wait()
	})
}

// Not parallel: the signal reaches every handler of the process.
func TestSignals(t *testing.T) { //nolint:paralleltest // see above
	self, err := os.FindProcess(os.Getpid())
	require.NoError(t, err)
	for _, sig := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		ctx, stop := lifecycle.Signals()
		require.NoError(t, ctx.Err())
		require.NoError(t, self.Signal(sig))
		<-ctx.Done()
		stop()
	}
}
