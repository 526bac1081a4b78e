package pending_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// cancels notes what was cancelled.
type cancels struct {
	mu   sync.Mutex
	rids []string
}

func (c *cancels) Cancel(rid string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rids = append(c.rids, rid)
	return nil
}

func (c *cancels) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.rids)
}

// client is a connection that leaves when it is told to.
type client struct{ gone, aborted atomic.Bool }

func (c *client) Gone() bool { return c.gone.Load() }
func (c *client) Abort()     { c.aborted.Store(true) }

var limits = pending.Limits{Queue: 30 * time.Second, Grace: 2 * time.Second, Lease: 5 * time.Second, Silence: 15 * time.Second, Heartbeat: 10 * time.Second}

type bench struct {
	table    *pending.Table
	request  *pending.Request
	client   *client
	cancels  *cancels
	failures atomic.Int64
}

func setup(change ...func(*pending.Limits)) *bench {
	b := &bench{client: &client{}, cancels: &cancels{}}
	limits := limits
	for _, c := range change {
		c(&limits)
	}
	b.table = pending.NewTable(limits, b.cancels, slog.New(slog.DiscardHandler), func(error) { b.failures.Add(1) })
	b.request = b.table.Add("r", b.client, time.Now().Add(limits.Queue))
	return b
}

// at is the position of a delivery to the dispatcher.
func at(delivery uint64) contract.Position {
	return contract.Position{Stage: contract.StageEnriched, Delivery: delivery}
}

// from makes a message of one frame of any stage.
func from(stage contract.Stage, kind contract.FrameKind, delivery, seq uint64, payload string) []byte {
	position := contract.Position{Stage: stage, Delivery: delivery}
	return contract.AppendFrame(nil, contract.Frame{Kind: kind, Position: position, Seq: seq, Payload: []byte(payload)})
}

// f makes a message of one frame of the dispatcher.
func f(kind contract.FrameKind, delivery, seq uint64, payload string) []byte {
	return from(contract.StageEnriched, kind, delivery, seq, payload)
}

// busy says that a worker of a stage has the request.
func busy(stage contract.Stage, delivery uint64) contract.Sign {
	return contract.Sign{Position: contract.Position{Stage: stage, Delivery: delivery}, RequestID: "r"}
}

// back says that the first worker of a stage gave the request back.
type back contract.Sign

// queued says that the request waits for a stage.
func queued(stage contract.Stage) contract.Sign { return busy(stage, 0) }

// first is the worker that gives the signs.
const first = "first"

// take takes in a message with frames, or a sign.
func (b *bench) take(events ...any) {
	for _, e := range events {
		switch e := e.(type) {
		case []byte:
			b.table.Deliver("r", e)
		case contract.Sign:
			b.table.Alive(first, e)
		case back:
			b.table.HandedBack(contract.Sign(e))
		}
	}
}

func head(delivery uint64) []byte                { return f(contract.FrameHead, delivery, 0, "{}") }
func data(delivery, seq uint64, t string) []byte { return f(contract.FrameData, delivery, seq, t) }
func end(delivery, seq uint64) []byte            { return f(contract.FrameEnd, delivery, seq, "{}") }
func working() contract.Sign                     { return busy(contract.StageEnriched, 1) }

// read takes the whole answer out of a request.
func read(r *pending.Request) (string, error) {
	if _, err := r.Head(); err != nil {
		return "", err
	}
	var text []byte
	var p pending.Part
	for {
		p = r.Next(p.Data)
		text = append(text, bytes.Join(p.Data, nil)...)
		if p.Err != nil || p.End {
			return string(text), p.Err
		}
	}
}

// run sweeps the table of b inside a synctest bubble.
func (b *bench) run(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { b.table.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
}
