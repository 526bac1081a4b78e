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
	bus     *Bus
	cfg     FactsConfig
	handle  func(context.Context, []Fact) error
	consume jetstream.ConsumeContext
	arrived chan jetstream.Msg

	soft context.Context //nolint:containedctx // ended: take no more
	hard context.Context //nolint:containedctx // ended: give up the batch under way
	stop context.CancelFunc
	kill context.CancelFunc
	wg   sync.WaitGroup
}

const factRetry = time.Second

// ConsumeFacts calls handle with batches of facts in stream order, one batch at a time. A batch is acknowledged when handle returns nil and
// comes back later when it does not. The caller must Stop the consumer.
func (b *Bus) ConsumeFacts(ctx context.Context, cfg FactsConfig, handle func(context.Context, []Fact) error) (*FactConsumer, error) {
	cons, err := b.js.Consumer(ctx, subject.FactsStream, cfg.Consumer)
	if err != nil {
		return nil, fmt.Errorf("opening consumer %s: %w", cfg.Consumer, err)
	}
	f := &FactConsumer{bus: b, cfg: cfg, handle: handle, arrived: make(chan jetstream.Msg)}
	f.hard, f.kill = context.WithCancel(context.WithoutCancel(ctx))
	f.soft, f.stop = context.WithCancel(f.hard)
	f.consume, err = cons.Consume(f.receive, jetstream.PullMaxMessages(max(1, cfg.MaxBatch)))
	if err != nil {
		f.kill()
		return nil, fmt.Errorf("consuming %s: %w", cfg.Consumer, err)
	}
	f.wg.Go(f.run)
	return f, nil
}

// receive hands a message to the batching goroutine, or back to the server when there is none any more.
func (f *FactConsumer) receive(m jetstream.Msg) {
	select {
	case f.arrived <- m:
	case <-f.soft.Done():
		_ = m.Nak() // without it the fact would come back after AckWait
	}
}

func (f *FactConsumer) run() {
	for {
		msgs := f.batch()
		if len(msgs) == 0 {
			return
		}
		if err := f.process(msgs); err != nil && f.hard.Err() == nil {
			f.bus.log.Warn("consuming facts", slog.Any("error", err))
		}
	}
}

// batch waits for a first fact and takes what comes within MaxWait. It is empty when the consumer stops.
func (f *FactConsumer) batch() []jetstream.Msg {
	var msgs []jetstream.Msg
	select {
	case m := <-f.arrived:
		msgs = append(msgs, m)
	case <-f.soft.Done():
		return nil
	}
	timeout := time.NewTimer(f.cfg.MaxWait)
	defer timeout.Stop()
	for len(msgs) < f.cfg.MaxBatch {
		select {
		case m := <-f.arrived:
			msgs = append(msgs, m)
		case <-timeout.C:
			return msgs
		case <-f.soft.Done():
			return msgs
		}
	}
	return msgs
}

// process hands a batch over and settles it.
func (f *FactConsumer) process(msgs []jetstream.Msg) error {
	facts := make([]Fact, 0, len(msgs))
	for _, m := range msgs {
		meta, err := m.Metadata()
		if err != nil {
			return fmt.Errorf("reading the position of a fact: %w", err)
		}
		facts = append(facts, Fact{Subject: m.Subject(), Data: m.Data(), Sequence: meta.Sequence.Stream, Delivery: meta.NumDelivered})
	}
	ctx, end := factsSpan(f.hard, f.cfg.Consumer, len(facts))
	err := f.handle(ctx, facts)
	end(err)
	if err != nil {
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

// Stop takes no more facts. The batch under way is finished or, when ctx ends first, cancelled and handed back.
func (f *FactConsumer) Stop(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.stop()
	f.consume.Drain()
	cancelled := context.AfterFunc(ctx, f.kill)
	f.wg.Wait()
	cancelled()
	f.kill()
	<-f.consume.Closed()
	return nil
}

// DeadFact puts a fact that can't be understood among the dead letters of stage. The fact itself may then be acknowledged.
func (b *Bus) DeadFact(ctx context.Context, stage string, f Fact, reason string) error {
	return b.publishDead(ctx, stage, "", f.Subject, reason, f.Delivery)
}
