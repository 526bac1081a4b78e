package bus

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/subject"
)

// PublishFact stores a fact and returns when the server has it. A non-empty id makes a repeated publish store it once.
func (b *Bus) PublishFact(ctx context.Context, subj, id string, data []byte) error {
	msg := &nats.Msg{Subject: subj, Data: data}
	if id != "" {
		msg.Header = nats.Header{nats.MsgIdHdr: {id}}
	}
	if _, err := b.js.PublishMsg(ctx, msg); err != nil {
		return fmt.Errorf("publishing a fact to %s: %w", subj, err)
	}
	return nil
}

// Fact is one stored fact.
type Fact struct {
	Subject  string
	Data     []byte
	Sequence uint64 // position in the stream
	Delivery uint64 // delivery count, from 1
}

// FactsConfig says how facts are read.
type FactsConfig struct {
	Consumer string        // durable consumer of the facts stream
	MaxBatch int           // most facts handled together
	MaxWait  time.Duration // longest wait to fill a batch
}

// FactConsumer reads facts in batches.
type FactConsumer struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

const factRetry = time.Second

// ConsumeFacts calls handle with batches of facts in stream order, one batch at a time. A batch is acknowledged when handle returns nil and
// comes back, in order of the server's choice, when it does not. The context of handle is cancelled by Stop.
func (b *Bus) ConsumeFacts(ctx context.Context, cfg FactsConfig, handle func(context.Context, []Fact) error) (*FactConsumer, error) {
	cons, err := b.js.Consumer(ctx, subject.FactsStream, cfg.Consumer)
	if err != nil {
		return nil, fmt.Errorf("opening consumer %s: %w", cfg.Consumer, err)
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &FactConsumer{cancel: cancel}
	f.wg.Go(func() {
		for runCtx.Err() == nil {
			if err := b.consumeBatch(runCtx, cons, cfg, handle); err != nil && runCtx.Err() == nil {
				b.log.Warn("consuming facts", slog.Any("error", err))
				select {
				case <-runCtx.Done():
				case <-time.After(factRetry):
				}
			}
		}
	})
	return f, nil
}

// consumeBatch waits for the first fact, collects what comes within MaxWait, and hands it over.
func (b *Bus) consumeBatch(ctx context.Context, cons jetstream.Consumer, cfg FactsConfig, handle func(context.Context, []Fact) error) error {
	msgs, err := b.fetch(ctx, cons, cfg)
	if err != nil || len(msgs) == 0 {
		return err
	}
	facts := make([]Fact, 0, len(msgs))
	for _, m := range msgs {
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading the position of a fact: %w", err)
		}
		facts = append(facts, Fact{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Delivery: meta.NumDelivered})
	}
	if err := handle(ctx, facts); err != nil {
		for _, m := range msgs {
			_ = m.NakWithDelay(factRetry)
		}
		return fmt.Errorf("handling %d facts: %w", len(facts), err)
	}
	for _, m := range msgs {
		if err := m.Ack(); err != nil {
			return fmt.Errorf("acknowledging a fact: %w", err)
		}
	}
	return nil
}

const idleFetch = 30 * time.Second

func (b *Bus) fetch(ctx context.Context, cons jetstream.Consumer, cfg FactsConfig) ([]jetstream.Msg, error) {
	first, err := collect(ctx, cons, 1, idleFetch)
	if err != nil || len(first) == 0 || cfg.MaxBatch <= 1 {
		return first, err
	}
	rest, err := collect(ctx, cons, cfg.MaxBatch-1, cfg.MaxWait)
	if err != nil {
		b.log.Warn("fetching facts", slog.Any("error", err))
	}
	return append(first, rest...), nil
}

func collect(ctx context.Context, cons jetstream.Consumer, n int, wait time.Duration) ([]jetstream.Msg, error) {
	waitCtx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	batch, err := cons.Fetch(n, jetstream.FetchContext(waitCtx))
	if err != nil {
		return nil, fmt.Errorf("fetching facts: %w", err)
	}
	var msgs []jetstream.Msg
	for m := range batch.Messages() {
		msgs = append(msgs, m)
	}
	return msgs, nil
}

// Stop ends the consumer. The batch under way is finished or, when ctx ends first, cancelled and handed back.
func (f *FactConsumer) Stop(context.Context) error {
	if f == nil {
		return nil
	}
	f.cancel()
	f.wg.Wait()
	return nil
}

// DeadFact puts a fact that can't be understood among the dead letters of stage. The fact itself may then be acknowledged.
func (b *Bus) DeadFact(ctx context.Context, stage string, f Fact, reason string) error {
	return b.publishDead(ctx, stage, "", f.Subject, reason, f.Delivery)
}
