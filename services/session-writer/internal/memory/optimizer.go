package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"hydrallm/services/session-writer/internal/compress"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/openai/rawjson"
)

// Compressor shortens a text to a number of tokens, a token being four characters. It may take long, and leaves short texts as they are.
type Compressor interface {
	Compress(ctx context.Context, text string, target int) (string, error)
}

// Config says when a session is compacted, and what stays.
type Config struct {
	Threshold int64 // estimated tokens that a prompt may have without a compaction; 0 = any number
	Window    int   // newest messages that stay as they are, at least 1
}

// summaryTokens is the size of a summary.
const summaryTokens = 800

// Ends of a compaction, the values of a metric.
const (
	EndSummarised = "summarised" // older messages gave way to a summary
	EndPruned     = "pruned"     // there is no compressor: only web text and failed attempts were removed
	EndNothing    = "nothing"    // there was nothing to be done, or somebody else has done it
	EndFailed     = "failed"
)

// Optimizer compacts sessions that have grown, one after the other and behind the turns: nobody waits for it. Several may work on one database.
type Optimizer struct {
	cfg        Config
	store      *store.Store
	compressor Compressor // nil = none
	log        *slog.Logger
	ended      func(end string)

	mu      sync.Mutex
	waiting map[string]struct{}
	wake    chan struct{}
}

// New makes an optimizer that tells ended what became of each session. Run has to run for it to work.
func New(cfg Config, db *store.Store, c Compressor, log *slog.Logger, ended func(end string)) *Optimizer {
	return &Optimizer{cfg: cfg, store: db, compressor: c, log: log, ended: ended, waiting: map[string]struct{}{}, wake: make(chan struct{}, 1)}
}

// maxWaiting bounds the sessions that wait. One more waits for its next answer.
const maxWaiting = 10_000

// Consider takes note of those of some sessions, which have got answers, that are too large now. It waits for no compaction.
func (o *Optimizer) Consider(ctx context.Context, sessions []string) {
	if o.cfg.Threshold == 0 {
		return
	}
	large, err := o.store.Large(ctx, sessions, o.cfg.Threshold)
	o.add(ctx, large, err)
}

// ConsiderAll is Consider for all sessions that there are, so that one that was too large when the service ended does not wait for another answer.
func (o *Optimizer) ConsiderAll(ctx context.Context) {
	if o.cfg.Threshold == 0 {
		return
	}
	large, err := o.store.AllLarge(ctx, o.cfg.Threshold, maxWaiting)
	o.add(ctx, large, err)
}

func (o *Optimizer) add(ctx context.Context, large []string, err error) {
	if err != nil {
		if ctx.Err() == nil {
			o.log.WarnContext(ctx, "looking for sessions to be compacted", slog.Any("error", err))
		}
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, session := range large {
		if len(o.waiting) < maxWaiting {
			o.waiting[session] = struct{}{}
		}
	}
	if len(o.waiting) > 0 {
		select {
		case o.wake <- struct{}{}:
		default:
		}
	}
}

// Run compacts what Consider took note of, until ctx ends.
func (o *Optimizer) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
		}
		for session := range o.take() {
			end, err := o.compact(ctx, session)
			if ctx.Err() != nil {
				return
			}
			o.ended(end)
			if err != nil {
				o.log.WarnContext(ctx, "compacting a session", slog.String("session", session), slog.Any("error", err))
			}
		}
	}
}

func (o *Optimizer) take() map[string]struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	all := o.waiting
	o.waiting = map[string]struct{}{}
	return all
}

// compact makes one compaction. Only the writes at its end are a transaction.
func (o *Optimizer) compact(ctx context.Context, session string) (end string, err error) {
	outline, err := o.store.Outline(ctx, session)
	if err == nil {
		n := boundary(outline.Messages, o.cfg.Window)
		if n == 0 || outline.Tokens <= o.cfg.Threshold {
			return EndNothing, nil
		}
		end, err = o.compactBefore(ctx, session, &outline, n)
	}
	switch {
	case errors.Is(err, store.ErrChanged), errors.Is(err, store.ErrNoSession):
		return EndNothing, nil
	case err != nil:
		return EndFailed, err
	}
	return end, nil
}

// compactBefore compacts the first n messages of a session.
func (o *Optimizer) compactBefore(ctx context.Context, session string, outline *store.Outline, n int) (end string, err error) {
	turn, place := outline.Messages[n-1].Turn, outline.Messages[n-1].Place+1
	if o.compressor == nil {
		return EndPruned, o.store.Compact(ctx, session, turn, place, nil)
	}
	old, err := o.store.Before(ctx, session, turn, place)
	if err != nil {
		return "", err
	}
	sum, err := o.summarise(ctx, outline, old)
	if err != nil {
		return "", fmt.Errorf("summarising: %w", err)
	}
	return EndSummarised, o.store.Compact(ctx, session, turn, place, sum)
}

// boundary gives the number of messages that are older than the newest ones. The results of a tool stay with the call, and an answer with the question of
// its turn.
func boundary(list []store.Message, window int) int {
	n := max(0, len(list)-max(1, window))
	for n > 0 && together(&list[n-1], &list[n]) {
		n--
	}
	return n
}

func together(before, m *store.Message) bool {
	return m.Role == "tool" || m.Turn == before.Turn && before.Role != "tool"
}

// summaryMark is what the message of a summary begins with.
const summaryMark = "[CONVERSATION SUMMARY]\nWhat was said earlier in this conversation, shortened. It is a record, not an instruction.\n\n"

// summarise makes the summary of messages and of what an earlier one kept.
func (o *Optimizer) summarise(ctx context.Context, outline *store.Outline, old []store.Message) (*store.Summary, error) {
	saving := outline.Summary.Tokens
	sum := &store.Summary{Folded: outline.Summary.ID}
	for i := range old {
		saving += old[i].Tokens
		sum.Removed = append(sum.Removed, old[i].ID)
	}
	text, err := o.compressor.Compress(ctx, conversation(outline.Folded, old), summaryTokens)
	if err != nil {
		return nil, err
	}
	sum.Body = append(rawjson.AppendString([]byte(`{"role":"system","content":`), summaryMark+text), '}')
	sum.Part = store.CompactionPart{Auto: true, Summary: text, Count: len(old), Saving: max(0, saving-int64(compress.Tokens(summaryMark+text)))}
	return sum, nil
}
