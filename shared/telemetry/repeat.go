package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
)

// Bounds of lines that are alike.
const (
	repeatWindow = 10 * time.Second
	repeatShown  = 3    // that are written as they come
	repeatKinds  = 1000 // that are kept apart; further ones are not summed up
)

// repeatHandler keeps a log readable when something happens to every request of a crowd: the first lines that are alike are written as they come,
// the others of each window as one with their number. Lines are alike when level, message and attributes are, but for the request id. The event
// lines of R-370 below warnings are left alone, and what Line writes.
type repeatHandler struct {
	slog.Handler
	prefix string // what the logger itself adds to the lines
	all    *repeats
	level  *slog.LevelVar // of the whole log
}

// repeats are the lines of one log.
type repeats struct {
	mu     sync.Mutex
	lines  map[string]*repeat
	closed bool
}

// repeat is a kind of line that came within the last window.
type repeat struct {
	shown int
	more  int            // that were not written
	sum   func(more int) // writes the line that stands for them
	timer *time.Timer
}

func newRepeatHandler(h slog.Handler, level *slog.LevelVar) repeatHandler {
	return repeatHandler{Handler: h, level: level, all: &repeats{lines: map[string]*repeat{}}}
}

func (h repeatHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo || r.Level < slog.LevelWarn && strings.HasPrefix(r.Message, EventPrefix) || ctx.Value(lineKey{}) != nil || h.all.take(ctx, h, r) {
		return h.Handler.Handle(ctx, r)
	}
	return nil
}

func (h repeatHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	var b strings.Builder
	for _, a := range attrs {
		writeKey(&b, a)
	}
	return repeatHandler{Handler: h.Handler.WithAttrs(attrs), prefix: h.prefix + b.String(), all: h.all, level: h.level}
}

func (h repeatHandler) WithGroup(name string) slog.Handler {
	return repeatHandler{Handler: h.Handler.WithGroup(name), prefix: h.prefix + name + "\x00", all: h.all, level: h.level}
}

func writeKey(b *strings.Builder, a slog.Attr) {
	if a.Key != requestAttr {
		b.WriteString(a.Key + "=" + a.Value.String() + "\x00")
	}
}

// take says whether to write the line now.
func (s *repeats) take(ctx context.Context, h repeatHandler, r slog.Record) bool {
	var b strings.Builder
	b.WriteString(h.prefix + r.Level.String() + r.Message + "\x00")
	r.Attrs(func(a slog.Attr) bool {
		writeKey(&b, a)
		return true
	})
	key := b.String()
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[key]
	switch {
	case s.closed, line == nil && len(s.lines) >= repeatKinds:
		return true
	case line == nil:
		line = &repeat{}
		line.timer = time.AfterFunc(repeatWindow, func() { s.end(key) })
		s.lines[key] = line
	case line.shown == repeatShown:
		last := r.Clone()
		line.more++
		line.sum = func(more int) { sum(ctx, h.Handler, last, more) }
		return false
	}
	line.shown++
	return true
}

// end writes what there is to say about the window of a line. The next window of one that still comes has nothing else.
func (s *repeats) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := s.lines[key]
	if line == nil {
		return
	}
	if line.more == 0 {
		delete(s.lines, key)
		return
	}
	line.write()
	line.timer.Reset(repeatWindow)
}

func (l *repeat) write() {
	l.sum(l.more)
	l.more = 0
}

// sum writes a line that stands for others like r. It belongs to no request.
func sum(ctx context.Context, h slog.Handler, r slog.Record, more int) {
	line := slog.NewRecord(time.Now(), r.Level, r.Message, r.PC)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key != requestAttr {
			line.AddAttrs(a)
		}
		return true
	})
	line.AddAttrs(slog.Int("more", more))
	_ = h.Handle(context.WithValue(context.WithoutCancel(ctx), requestKey{}, nil), line) // as slog does, there is nobody to tell
}

// close writes what is left. Lines that come later are written as they are.
func (s *repeats) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, line := range s.lines {
		line.timer.Stop()
		if line.more > 0 {
			line.write()
		}
	}
	clear(s.lines)
}
