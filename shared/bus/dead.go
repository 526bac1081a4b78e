package bus

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

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
	b.metrics.dead.WithLabelValues(l.stage).Inc()
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
