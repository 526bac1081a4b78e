package bus

import (
	"context"
	"time"

	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// settledEvery is how often FactsSettled looks.
const settledEvery = 50 * time.Millisecond

// FactsSettled waits until all facts that are in their stream now have been consumed, or ctx ends.
func (b *Bus) FactsSettled(ctx context.Context, consumer string) error {
	stream, err := topology.StreamInfo(ctx, b.nc, subject.FactsStream)
	if err != nil {
		return err
	}
	for {
		c, err := topology.ConsumerInfo(ctx, b.nc, subject.FactsStream, consumer)
		if err != nil {
			return err
		}
		if c.AckFloor.Stream >= stream.State.LastSeq || c.NumPending == 0 && c.NumAckPending == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settledEvery):
		}
	}
}
