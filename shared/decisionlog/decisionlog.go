// Package decisionlog stores routing decisions as facts, beside the way of the requests: a decision does not wait for its record.
package decisionlog

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/subject"
)

// Limits of a batch: what is waited for and how many entries one message may hold.
const (
	batchWait  = 100 * time.Millisecond
	batchCount = 512
	queueSize  = 4096
	stopLimit  = 10 * time.Second // for what is left at the stop
	category   = "ROUTING"
)

// Bytes of what is written about a decision, usually.
const (
	usualLine     = 384
	usualMetadata = 128
)

// Publisher stores a fact and returns when it is safe.
type Publisher interface {
	PublishFact(ctx context.Context, subj, id string, data []byte) error
}

// entry is one decision.
type entry struct {
	rid, session string
	model        string // as the client named it
	decision     contract.Decision
	at           time.Time
}

// Log writes decisions in a goroutine of its own, several to a message: one line of JSON each.
type Log struct {
	pub   Publisher
	log   *slog.Logger
	lost  func()
	queue chan entry

	ctx    context.Context //nolint:containedctx // the lifetime of the writer, ended by Stop when its time is over
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.RWMutex // guards stopped against a send on the closed queue
	stopped bool
}

// New starts a decision log; lost is called for each decision that could not be stored. The caller must Stop it.
func New(pub Publisher, log *slog.Logger, lost func()) *Log {
	ctx, cancel := context.WithCancel(context.Background())
	j := &Log{pub: pub, log: log, lost: lost, queue: make(chan entry, queueSize), ctx: ctx, cancel: cancel}
	j.wg.Go(j.run)
	return j
}

// Note queues the decision about a request. It never waits: what finds the queue full is lost. A request that is noted twice is stored once.
func (j *Log) Note(r *contract.Request) {
	e := entry{rid: r.ID, session: r.SessionID, model: r.Model, decision: *r.Decision, at: time.Now()}
	j.mu.RLock()
	defer j.mu.RUnlock()
	if !j.stopped {
		select {
		case j.queue <- e:
			return
		default:
		}
	}
	j.lost()
}

// Stop writes what is queued until ctx ends, and loses the rest. It is idempotent and tolerates a log that was never made.
func (j *Log) Stop(ctx context.Context) {
	if j == nil {
		return
	}
	j.mu.Lock()
	if !j.stopped {
		j.stopped = true
		close(j.queue)
	}
	j.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	defer context.AfterFunc(ctx, j.cancel)()
	j.wg.Wait()
	j.cancel()
}

func (j *Log) run() {
	for first := range j.queue {
		batch := j.fill([]entry{first})
		if err := j.write(batch); err != nil {
			for range batch {
				j.lost()
			}
			j.log.Warn("storing routing decisions", slog.Int("decisions", len(batch)), slog.Any("error", err))
		}
	}
}

// fill collects what comes within batchWait.
func (j *Log) fill(batch []entry) []entry {
	timeout := time.NewTimer(batchWait)
	defer timeout.Stop()
	for len(batch) < batchCount {
		select {
		case e, ok := <-j.queue:
			if !ok {
				return batch
			}
			batch = append(batch, e)
		case <-timeout.C:
			return batch
		}
	}
	return batch
}

func (j *Log) write(batch []entry) error {
	if err := j.ctx.Err(); err != nil {
		return fmt.Errorf("writing the decision log: %w", err)
	}
	lines := make([]byte, 0, usualLine*len(batch))
	for i := range batch {
		lines = append(batch[i].appendFact(lines), '\n')
	}
	return j.pub.PublishFact(j.ctx, subject.Log(category), "", lines) // it waits for a NATS that is away
}

// appendFact appends the fact of a decision. Its id is that of the request, so that the first decision about a request is kept, however often its
// message was delivered.
func (e *entry) appendFact(dst []byte) []byte {
	d := e.decision
	d.Model = fault.Shown(d.Model)
	model := fault.Shown(e.model)
	fact := contract.Log{
		ID: e.rid + ".routing", Level: "INFO", Category: category, Message: sentence(model, &d), RequestID: e.rid, Metadata: e.metadata(model, &d), At: e.at,
	}
	return fact.AppendJSON(dst)
}

// metadata is what a fact says beside its sentence. Every request has it, so that reflection would show.
func (e *entry) metadata(model string, d *contract.Decision) []byte {
	text := append(make([]byte, 0, usualMetadata), '{')
	text = appendGiven(text, "session_id", fault.Shown(e.session))
	text = rawjson.AppendString(append(text, `"model":`...), model)
	text = append(text, ',')
	text = appendGiven(text, "provider", d.Provider)
	text = appendGiven(text, "agent", d.Agent)
	text = appendGiven(text, "target_model", d.Model)
	text = rawjson.AppendString(append(text, `"reason":`...), d.Reason)
	for _, flag := range []struct {
		name string
		set  bool
	}{{"configured", d.Configured}, {"strict", d.PinProvider}, {"images", d.Needs.Has(contract.FeatureImages)}, {"search", d.Search}} {
		if flag.set {
			text = append(append(append(text, `,"`...), flag.name...), `":true`...)
		}
	}
	return append(strconv.AppendInt(append(text, `,"tokens":`...), d.Tokens, 10), '}')
}

// appendGiven appends a member, and what parts it from the next one, unless it is empty.
func appendGiven(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, '"'), name...), `":`...)
	return append(rawjson.AppendString(dst, value), ',')
}

// sentence tells a decision to people.
func sentence(model string, d *contract.Decision) string {
	target := d.Provider + d.Agent
	switch {
	case d.Configured:
		target = "the upstreams of " + d.Model
	case d.Model != "":
		target += "/" + d.Model
	}
	return named(model) + " goes to " + target + ": " + contract.ShowReason(d.Reason) + ", about " + strconv.FormatInt(d.Tokens, 10) + " tokens"
}

func named(model string) string {
	if model == "" {
		return "a request without a model"
	}
	return model
}
