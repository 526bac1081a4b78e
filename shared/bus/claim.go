package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// headerDigest is what a request asked for, in a claim.
const headerDigest = "Hydra-Digest"

// Claim says which request answers whatever is asked for under a key. It is kept as long as recordings are. The zero Claim is none.
type Claim struct {
	Request string // id of the request, whose answer is recorded
	Digest  string // of what it asked for

	sequence uint64
}

// Claimed gives the claim of a key, a single token of a subject; the zero Claim when there is none.
func (b *Bus) Claimed(ctx context.Context, key string) (Claim, error) {
	m, err := b.lastMessage(ctx, subject.Claim(key))
	switch {
	case errors.Is(err, ErrNoRecording):
		return Claim{}, nil
	case err != nil:
		return Claim{}, fmt.Errorf("looking for a claim: %w", err)
	}
	return Claim{Request: m.Header.Get(contract.HeaderRequestID), Digest: m.Header.Get(headerDigest), sequence: m.Sequence}, nil
}

// Claim makes next the claim of a key in the place of last, which Claimed gave. Of several who do so at the same time one succeeds; the others get
// ErrSuperseded.
func (b *Bus) Claim(ctx context.Context, key string, last, next Claim) error {
	msg := &nats.Msg{Subject: subject.Claim(key), Header: nats.Header{contract.HeaderRequestID: {next.Request}, headerDigest: {next.Digest}}}
	if _, err := b.storeBehind(ctx, msg, last.sequence); err != nil {
		return fmt.Errorf("claiming a key: %w", err)
	}
	return nil
}
