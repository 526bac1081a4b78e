package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// PublishFact stores a fact and returns when the server has it. While the server is away it waits, until ctx ends. A non-empty id makes a
// repeated publish store it once. Data above the payload limit is offloaded, and is there for as long as bodies of requests are.
// It belongs to the trace of ctx, or to those of WithTraces.
func (b *Bus) PublishFact(ctx context.Context, subj, id string, data []byte) error {
	if id == "" {
		id = rand.Text() // it may take several tries
	}
	msg := &nats.Msg{Subject: subj, Data: data, Header: nats.Header{nats.MsgIdHdr: {id}}}
	traceFact(ctx, msg.Header)
	if len(data) > b.maxInline {
		name := "fact." + id
		if err := b.storeBody(ctx, name, data); err != nil {
			return err
		}
		msg.Header[contract.HeaderBody] = []string{name}
		msg.Data = nil
	}
	return b.store(ctx, msg)
}

// factData gives the data of a fact, and the name of its object if it is offloaded. An object that is gone leaves no data: it was removed after the fact was
// consumed, or has expired, and whoever can't do without it finds nothing to read.
func (b *Bus) factData(ctx context.Context, header nats.Header, data []byte) (all []byte, object string, err error) {
	if object = first(header[contract.HeaderBody]); object == "" {
		return data, "", nil
	}
	all, err = b.loadBody(ctx, object)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, object, nil
	}
	return all, object, err
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
	waits   prometheus.Observer
	puller  *puller
	arrived chan *message

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
	f := &FactConsumer{bus: b, cfg: cfg, handle: handle, waits: b.metrics.waits.WithLabelValues(cfg.Consumer), arrived: make(chan *message)}
	f.hard, f.kill = context.WithCancel(context.WithoutCancel(ctx))
	f.soft, f.stop = context.WithCancel(f.hard)
	f.puller = b.pullDurable(subject.FactsStream, cfg.Consumer, max(1, cfg.MaxBatch), f.receive)
	if err := f.puller.start(ctx); err != nil {
		f.kill()
		return nil, err
	}
	f.wg.Go(f.run)
	return f, nil
}

// receive hands a message to the batching goroutine, or back to the server when there is none any more.
func (f *FactConsumer) receive(m *message) {
	select {
	case f.arrived <- m:
	case <-f.soft.Done():
		_ = m.settle(jetstream.Msg.Nak) // without it the fact would come back after AckWait
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
func (f *FactConsumer) batch() []*message {
	var msgs []*message
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
func (f *FactConsumer) process(msgs []*message) error {
	facts, objects, err := f.read(msgs)
	if err != nil {
		f.retry(msgs)
		return err
	}
	ctx, end := factSpans(f.hard, f.cfg.Consumer, msgs)
	err = f.handle(ctx, facts)
	end(err)
	if err != nil {
		f.retry(msgs)
		return fmt.Errorf("handling %d facts: %w", len(facts), err)
	}
	for _, m := range msgs {
		if err := m.settle(jetstream.Msg.Ack); err != nil {
			return fmt.Errorf("acknowledging a fact: %w", err)
		}
	}
	for _, name := range objects {
		if err := f.bus.bodies.Delete(f.hard, name); err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
			return fmt.Errorf("removing the data of a fact: %w", err) // it expires
		}
	}
	return nil
}

// read gives the facts in messages, and the objects in which some of them are.
func (f *FactConsumer) read(msgs []*message) (facts []Fact, objects []string, err error) {
	for _, m := range msgs {
		meta, err := m.Metadata()
		if err != nil {
			return nil, nil, fmt.Errorf("reading the position of a fact: %w", err)
		}
		waited(f.waits, meta.Timestamp, meta.NumDelivered)
		data, object, err := f.bus.factData(f.hard, m.Headers(), m.Data())
		if err != nil {
			return nil, nil, fmt.Errorf("reading a fact: %w", err)
		}
		if object != "" {
			objects = append(objects, object)
		}
		facts = append(facts, Fact{Subject: m.Subject(), Data: data, Sequence: meta.Sequence.Stream, Delivery: meta.NumDelivered})
	}
	return facts, objects, nil
}

// retry hands messages back for later.
func (f *FactConsumer) retry(msgs []*message) {
	for _, m := range msgs {
		_ = m.settle(func(m jetstream.Msg) error { return m.NakWithDelay(factRetry) })
	}
}

// Stop takes no more facts. The batch under way is finished or, when ctx ends first, cancelled and handed back.
func (f *FactConsumer) Stop(ctx context.Context) error {
	if f == nil {
		return nil
	}
	f.stop()
	cancelled := context.AfterFunc(ctx, f.kill)
	f.puller.stop()
	f.wg.Wait()
	cancelled()
	f.kill()
	return nil
}

// DeadFact puts a fact that can't be understood among the dead letters of stage. The fact itself may then be acknowledged.
func (b *Bus) DeadFact(ctx context.Context, stage string, f Fact, reason string) error {
	return b.bury(ctx, deadLetter{stage: stage, origin: f.Subject, reason: reason, deliveries: f.Delivery})
}
