package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// deadLetter says what a stage could not process, and why. What the message held is not kept.
type deadLetter struct {
	stage      string
	rid        string // "" when it is not known
	origin     string // subject of the message
	reason     string
	deliveries uint64 // 0 when they are not known
}

// bury puts a letter where an operator finds it.
func (b *Bus) bury(ctx context.Context, l deadLetter) error {
	err := b.store(ctx, &nats.Msg{Subject: subject.Dead(l.stage), Header: nats.Header{
		nats.MsgIdHdr: {rand.Text()}, contract.HeaderRequestID: {oneLine(l.rid)}, "Hydra-Origin": {l.origin}, "Hydra-Reason": {oneLine(l.reason)},
		"Hydra-Deliveries": {strconv.FormatUint(l.deliveries, 10)},
	}})
	if err != nil {
		return fmt.Errorf("publishing a dead letter of %s: %w", l.stage, err)
	}
	b.dead.WithLabelValues(l.stage).Inc()
	return nil
}

// buryWork is bury for work messages, which nobody else tells of.
func (b *Bus) buryWork(ctx context.Context, l deadLetter) error {
	err := b.bury(ctx, l)
	b.log.Error("work message goes to the dead letters", slog.String("stage", l.stage), slog.String("rid", l.rid), slog.String("origin", l.origin),
		slog.Uint64("deliveries", l.deliveries), slog.String("reason", l.reason), slog.Any("error", err))
	return err
}

// oneLine makes text safe as a header value.
func oneLine(s string) string { return strings.NewReplacer("\r", " ", "\n", " ").Replace(s) }

// deadLetters gives the counter of dead letters in reg, which the buses of one process share; reg may be nil.
func deadLetters(reg prometheus.Registerer) (*prometheus.CounterVec, error) {
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hydrallm_dead_letters_total", Help: "Messages that a stage could not process.",
	}, []string{"stage"})
	if reg == nil {
		return counter, nil
	}
	err := reg.Register(counter)
	if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if counter, ok = known.ExistingCollector.(*prometheus.CounterVec); ok {
			return counter, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("registering the metric of dead letters: %w", err)
	}
	return counter, nil
}
