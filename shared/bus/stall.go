package bus

import (
	"context"
	"errors"
	"time"

	"hydrallm/shared/topology"
)

// checkEvery is how often whoever reads from a consumer of its own looks whether it misses something. Such a consumer is at one node of a cluster, and
// delivers what the copy there has. It gives signs of life also while that copy is behind, which after a restart of the node may be half a minute.
const checkEvery = 2 * time.Second

var errStalled = errors.New("the server has more than it delivers")

// misses asks the leader of a stream whether there is more on a subject than up to position. That is also so when the stream has begun to count anew.
// last is the number of the last message of the stream.
func (b *Bus) misses(ctx context.Context, stream, subj string, position uint64) (more bool, last uint64, err error) {
	info, err := topology.StreamInfo(ctx, b.nc, stream)
	if err != nil {
		return false, 0, err
	}
	last = info.State.LastSeq
	if last > position && info.State.Msgs > 0 {
		more, err = topology.HasFrom(ctx, b.nc, stream, subj, position+1)
		return more, last, err
	}
	return last < position, last, nil
}

// stall judges a reader by what it misses.
type stall struct {
	behind bool // it missed something at the last look
	at     uint64
}

// judge says whether a reader is stalled: at two looks in a row it missed something, and has not moved in between. What is missing at one look alone may
// be on its way.
func (s *stall) judge(position uint64, missing bool) bool {
	stalled := missing && s.behind && s.at == position
	s.behind, s.at = missing, position
	return stalled
}
