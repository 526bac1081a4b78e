//go:build e2e

package chaos

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/pgtest"
	"hydrallm/shared/testkit/processtest"
)

func TestMain(m *testing.M) { leaktest.Main(m, processtest.Remove, pgtest.Stop) }

// apart are the numbers of the first questions of two scenarios.
const apart = 1_000_000

// setting reads a number of the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, name)
	return n
}

// How many answers come before a fault, while it lasts, and after it.
const (
	before = 3 * clients
	during = 2 * clients
	after  = 3 * clients
)

// pace makes an answer take from a tenth of a second to a whole one.
const pace = 40 * time.Millisecond

// pause is how long a process is stopped, or a cable pulled: longer than the lease of a message.
const pause = 12 * time.Second

// scenario is one fault and what clients may notice of it.
type scenario struct {
	name  string
	short bool // it is part of the short form
	// fault breaks something and gives the repair.
	fault     func(t *testing.T, s stack) (repair func())
	lasts     time.Duration // at least
	processes bool          // containers have no such fault

	bar
}

// bar is what clients may notice, and how often an upstream is called for one request. No fault of the bus or of a worker fails a request of which nothing
// has been answered.
type bar struct {
	cuts  bool // streams under way may end with an error
	again bool // upstreams may be called again for what was not answered
	front bool // what one of the ingresses had in hand is lost
}

var scenarios = []scenario{
	{name: "nothing happens", fault: nothing},
	{name: "analyzer killed", short: true, fault: kill("analyzer")},
	{name: "enricher killed", short: true, fault: kill("enricher")},
	{name: "dispatcher killed", short: true, fault: kill("dispatcher"), bar: bar{cuts: true, again: true}},
	{name: "session-writer killed", short: true, fault: kill("session-writer")},
	{name: "NATS server killed", fault: killNode, bar: bar{cuts: true, again: true}},
	{name: "all workers restarted", short: true, fault: restart},
	{name: "analyzer paused", fault: stall("analyzer"), lasts: pause},
	{name: "enricher paused", fault: stall("enricher"), lasts: pause},
	{name: "dispatcher paused", fault: stall("dispatcher"), lasts: pause, bar: bar{cuts: true, again: true}},
	{name: "session-writer paused", fault: stall("session-writer"), lasts: pause},
	{name: "NATS server paused", fault: stallNode, lasts: pause, bar: bar{cuts: true, again: true}},
	{name: "PostgreSQL killed", fault: stopDatabase, lasts: pause},
	{name: "cable of a dispatcher pulled", fault: pull, lasts: pause, bar: bar{cuts: true, again: true}},
	{name: "network of a dispatcher down", fault: sever, lasts: pause, processes: true, bar: bar{cuts: true, again: true}},
	{name: "ingress killed", fault: kill("ingress"), bar: bar{front: true}},
	{name: "ingress paused", fault: stall("ingress"), lasts: pause},
}

// whatever dies, of a distributed gateway under load, requests of which nothing has been answered do not fail, and all workers can be replaced unnoticed.
func TestChaosProcesses(t *testing.T) {
	x := newDistributed(t, "127.0.0.1")
	x.runProcesses(t)
	x.playAll(t)
}

// the same is true of containers, which a Docker engine kills, pauses and parts.
func TestChaosContainers(t *testing.T) {
	x := newDistributed(t, engineAddress(t))
	x.runContainers(t)
	x.playAll(t)
}

// playAll runs the scenarios that a stack has, or the one that is asked for.
func (x *distributed) playAll(t *testing.T) {
	t.Helper()
	_, processes := x.stack.(*processes)
	seed := setting(t, "CHAOS_SEED", rand.Uint64()%1e6)
	rounds := setting(t, "CHAOS_ROUNDS", 1)
	only := os.Getenv("CHAOS_ONLY")
	t.Logf("CHAOS_SEED=%d", seed)
	x.upstream.Handle(func(r fakellm.Request) fakellm.Answer { return replyTo(r, pace) })
	var rows []row
	t.Cleanup(func() { t.Log(table(seed, rows)) })
	first := 0
	for range rounds {
		for _, s := range scenarios {
			if testing.Short() && !s.short || s.processes && !processes || only != "" && only != s.name {
				continue
			}
			t.Run(s.name, func(t *testing.T) {
				rows = append(rows, x.play(t, s, seed, first))
			})
			first += apart
		}
	}
	require.NotEmpty(t, rows, "no scenario is named %q", only)
}

// play runs a scenario and holds it to its bar.
func (x *distributed) play(t *testing.T, s scenario, seed uint64, first int) row {
	t.Helper()
	l := x.newLoad(seed, first)
	l.start(t)
	l.await(t, before)
	struck := time.Now()
	repair, repaired := s.fault(t, x.stack), false
	t.Cleanup(func() { // the next scenario begins with a whole stack, whatever became of this one
		if !repaired {
			repair()
		}
	})
	l.await(t, during)
	if rest := s.lasts - time.Since(struck); rest > 0 {
		<-time.After(rest)
	}
	repaired = true
	repair()
	l.await(t, after)
	results := l.finish()
	r := newRow(s.name, results, x.calls(first), struck)
	t.Log(r)
	for _, q := range results {
		if err := s.allows(q, r.perRequest[q.n], x.fronts[0]); err != nil {
			t.Errorf("q%d, %s of %s, stream %t, web %t, session %q, at %s, began %s and ended %s after the fault: %v", q.n, q.surface, q.model, q.stream, q.web, q.session, q.front,
				q.began.Sub(struck).Round(time.Millisecond), q.ended.Sub(struck).Round(time.Millisecond), err)
		}
	}
	x.awaitReady(t)
	x.checkIdle(t)
	x.checkSessions(t, results)
	return r
}

// allows says what is wrong with the end of a question.
func (b bar) allows(r result, calls int, lostFront string) error {
	switch {
	case b.front && r.front == lostFront && r.outcome != complete && r.outcome != refused:
		return nil
	case r.outcome == broken:
		return fmt.Errorf("malformed: %w", cmp.Or(r.err, errors.New("no answer")))
	case r.unfinished():
		return fmt.Errorf("failed before anything was answered: %w", r.err)
	case r.outcome == cut && !b.cuts:
		return r.err
	case r.outcome == complete && calls > 1 && !b.again && !testing.Short(): // a machine that is much too slow may bring that about
		return fmt.Errorf("%d upstream calls", calls)
	case r.outcome == complete && calls == 0:
		return errors.New("no upstream call")
	}
	return nil
}
