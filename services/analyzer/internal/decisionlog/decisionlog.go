// Package decisionlog stores routing decisions as facts, beside the way of the requests: a decision does not wait for its record.
package decisionlog

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

const (
	queueSize = 4096
	writers   = 4
	sendLimit = 10 * time.Second
	category  = "ROUTING"
)

// Publisher stores a fact and returns when it is safe.
type Publisher interface {
	PublishFact(ctx context.Context, subj, id string, data []byte) error
}

// Entry is one decision. Names are those fit to be shown.
type Entry struct {
	RequestID string
	SessionID string
	Model     string // as the client named it
	Decision  contract.Decision
	At        time.Time
}

// Log writes entries in goroutines of its own.
type Log struct {
	pub   Publisher
	log   *slog.Logger
	lost  func()
	queue chan Entry

	ctx    context.Context //nolint:containedctx // the lifetime of the writers, ended by Stop when its time is over
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.RWMutex // guards stopped against a send on the closed queue
	stopped bool
}

// New starts a decision log; lost is called for each entry that could not be stored. The caller must Stop it.
func New(pub Publisher, log *slog.Logger, lost func()) *Log {
	ctx, cancel := context.WithCancel(context.Background())
	j := &Log{pub: pub, log: log, lost: lost, queue: make(chan Entry, queueSize), ctx: ctx, cancel: cancel}
	for range writers {
		j.wg.Go(j.run)
	}
	return j
}

// Note queues an entry. It never waits: what finds the queue full is lost.
func (j *Log) Note(e Entry) {
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
	defer context.AfterFunc(ctx, j.cancel)()
	j.wg.Wait()
	j.cancel()
}

func (j *Log) run() {
	for e := range j.queue {
		if err := j.write(e); err != nil {
			j.lost()
			j.log.Warn("storing a routing decision", slog.String("rid", e.RequestID), slog.Any("error", err))
		}
	}
}

// metadata is what a fact says beside its sentence.
type metadata struct {
	SessionID string `json:"session_id,omitempty"`
	Model     string `json:"model"`
	Provider  string `json:"provider,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Target    string `json:"target_model,omitempty"`
	Reason    string `json:"reason"`
	Strict    bool   `json:"strict,omitempty"`
	Images    bool   `json:"images,omitempty"`
	Search    bool   `json:"search,omitempty"`
	Tokens    int64  `json:"tokens"`
}

func (j *Log) write(e Entry) error {
	if err := j.ctx.Err(); err != nil {
		return fmt.Errorf("writing the decision log: %w", err)
	}
	d := e.Decision
	meta, err := json.Marshal(metadata{
		SessionID: e.SessionID, Model: e.Model, Provider: d.Provider, Agent: d.Agent, Target: d.Model, Reason: d.Reason, Strict: d.PinProvider,
		Images: d.Images, Search: d.Search, Tokens: d.Tokens,
	})
	if err != nil {
		return fmt.Errorf("encoding a routing fact: %w", err)
	}
	data, err := json.Marshal(contract.Log{
		Level: "INFO", Category: category, Message: sentence(e), RequestID: e.RequestID, Metadata: meta, At: e.At,
	})
	if err != nil {
		return fmt.Errorf("encoding a routing fact: %w", err)
	}
	ctx, cancel := context.WithTimeout(j.ctx, sendLimit)
	defer cancel()
	return j.pub.PublishFact(ctx, subject.Log(category), e.RequestID+".routing", data) // one for each request, however often it is delivered
}

// sentence tells a decision to people.
func sentence(e Entry) string {
	d := e.Decision
	target := d.Provider + d.Agent
	if d.Model != "" {
		target += "/" + d.Model
	}
	return fmt.Sprintf("%s goes to %s: %s, about %d tokens", named(e.Model), target, contract.ShowReason(d.Reason), d.Tokens)
}

func named(model string) string {
	if model == "" {
		return "a request without a model"
	}
	return model
}
