package bus

import (
	"context"
	"time"
)

// FollowRecordings makes a sweeper that sweeps only when it is told to.
func (b *Bus) FollowRecordings(ctx context.Context) (*Sweeper, error) { return b.followRecordings(ctx) }

// SweepAt is what the sweeper does at a time.
func (s *Sweeper) SweepAt(ctx context.Context, now time.Time) { s.sweep(ctx, now) }
