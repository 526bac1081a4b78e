package bus

import (
	"context"
	"time"
)

// FollowRecordings makes a sweeper that sweeps only when it is told to.
func (b *Bus) FollowRecordings(ctx context.Context) (*Sweeper, error) { return b.followRecordings(ctx) }

// Kept gives the number of answers that may have to be sent again, and their bytes.
func (b *Bus) Kept() (answers int, bytes int64) { return len(b.unheard.all()), b.unheard.bytes.Load() }

// SweepAt is what the sweeper does at a time.
func (s *Sweeper) SweepAt(ctx context.Context, now time.Time) { s.sweep(ctx, now) }
