package sessionwriter

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/services/session-writer/internal/compact"
	"hydrallm/services/session-writer/internal/store"
)

// optimizer compacts sessions whose prompts have grown too large, one after the other.
type optimizer struct {
	store      *store.Store
	compressor compact.Compressor
	threshold  int64 // tokens; 0 = never
	window     int   // newest messages that stay
	log        *slog.Logger

	mu      sync.Mutex
	waiting []string
	known   map[string]bool // of those that wait
	wake    chan struct{}
}

func newOptimizer(cfg Config, db *store.Store, log *slog.Logger) *optimizer {
	return &optimizer{
		store: db, compressor: compact.Extract{}, threshold: int64(cfg.CompactThreshold), window: max(cfg.RecentWindow, 1), log: log, known: map[string]bool{}, wake: make(chan struct{}, 1),
	}
}

const (
	maxWaiting   = 10_000          // sessions; more come again with their next answer
	compactLimit = 2 * time.Minute // for one session
)

// consider notes sessions that have got an answer.
func (o *optimizer) consider(ctx context.Context, sessions []string) {
	if o.threshold == 0 {
		return
	}
	large, err := o.store.Large(ctx, sessions, o.threshold)
	if err != nil {
		o.log.WarnContext(ctx, "looking for sessions to be compacted", slog.Any("error", err))
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, session := range large {
		if !o.known[session] && len(o.waiting) < maxWaiting {
			o.known[session] = true
			o.waiting = append(o.waiting, session)
		}
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run compacts until ctx ends.
func (o *optimizer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for session := o.next(); session != "" && ctx.Err() == nil; session = o.next() {
			if err := o.compact(ctx, session); err != nil && ctx.Err() == nil {
				o.log.WarnContext(ctx, "compacting a session", slog.String("session", session), slog.Any("error", err))
			}
		}
	}
}

func (o *optimizer) next() (session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return ""
	}
	session, o.waiting = o.waiting[0], o.waiting[1:]
	delete(o.known, session)
	return session
}

// compact summarises what is older than the window. What takes long is done outside of the transaction; a failure changes nothing.
func (o *optimizer) compact(ctx context.Context, session string) error {
	ctx, cancel := context.WithTimeout(ctx, compactLimit)
	defer cancel()
	messages, err := o.store.Context(ctx, session)
	if err != nil {
		return err
	}
	older := messages[:o.boundary(messages)]
	if len(older) < 2 { // a summary alone is as short as it gets
		return nil
	}
	bodies := make([]string, len(older))
	for i := range older {
		bodies[i] = older[i].Body
	}
	summary, err := o.compressor.Compress(ctx, compact.Transcript(bodies), compact.Tokens)
	if err != nil {
		return fmt.Errorf("summarising: %w", err)
	}
	_, err = o.store.Compact(ctx, session, store.Compaction{Removed: older, Message: compact.Message(summary), Summary: summary})
	return err
}

// boundary gives where the messages begin that stay. The result of a tool is not parted from its call.
func (o *optimizer) boundary(messages []store.Message) int {
	i := max(len(messages)-o.window, 0)
	for i > 0 && messages[i].Role == "tool" {
		i--
	}
	return i
}
