// Package telemetry makes the logger, the metrics registry and the tracer that a process hands to its services.
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lmittmann/tint"
	"gopkg.in/natefinch/lumberjack.v2"
)

// LogConfig says where logs go and what they hold.
type LogConfig struct {
	Level  string // debug | info | warn | error
	Format string // text | json
	File   string // also written here, rotated; "" = standard output only
}

// Size and number of rotated log files.
const (
	logFileMegabytes = 10
	logFileBackups   = 5
)

// NewLogger writes to out and, if configured, to a rotating file. Lines carry the request id of their context. Lines that repeat are summed up;
// closeLog writes what is left of them and releases the file.
func NewLogger(cfg LogConfig, out io.Writer) (log *slog.Logger, closeLog func() error, err error) {
	level := new(slog.LevelVar)
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		return nil, nil, fmt.Errorf("reading the log level: %w", err)
	}
	closeFile := func() error { return nil }
	if cfg.File != "" {
		if err := os.MkdirAll(filepath.Dir(cfg.File), 0o750); err != nil {
			return nil, nil, fmt.Errorf("creating the log directory: %w", err)
		}
		file := &lumberjack.Logger{Filename: cfg.File, MaxSize: logFileMegabytes, MaxBackups: logFileBackups}
		out, closeFile = io.MultiWriter(out, file), file.Close
	}
	var handler slog.Handler
	if cfg.Format == "json" {
		handler = slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: inSeconds})
	} else {
		handler = tint.NewTextHandler(out, &tint.Options{Level: level, NoColor: true, TimeFormat: time.RFC3339Nano, ReplaceAttr: visible})
	}
	lines := newRepeatHandler(requestHandler{handler}, level)
	return slog.New(lines), func() error {
		lines.all.close()
		return closeFile()
	}, nil
}

// SetLevel changes what a log of NewLogger holds from now on: debug, info, warn or error. It leaves other loggers alone.
func SetLevel(log *slog.Logger, level string) error {
	h, ours := log.Handler().(repeatHandler)
	if !ours {
		return nil
	}
	if err := h.level.UnmarshalText([]byte(level)); err != nil {
		return fmt.Errorf("reading the log level: %w", err)
	}
	return nil
}

type requestKey struct{}

// requestAttr is the name of the request id in a line.
const requestAttr = "rid"

// WithRequest gives a context whose log lines carry the request id.
func WithRequest(ctx context.Context, rid string) context.Context {
	return context.WithValue(ctx, requestKey{}, rid)
}

// requestHandler adds the request id of the context to each record.
type requestHandler struct{ slog.Handler }

func (h requestHandler) Handle(ctx context.Context, r slog.Record) error {
	if rid, ok := ctx.Value(requestKey{}).(string); ok {
		r.AddAttrs(slog.String(requestAttr, rid))
	}
	return h.Handler.Handle(ctx, r)
}

func (h requestHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return requestHandler{h.Handler.WithAttrs(attrs)}
}

func (h requestHandler) WithGroup(name string) slog.Handler {
	return requestHandler{h.Handler.WithGroup(name)}
}

// EventPrefix begins the lines of R-370.
const EventPrefix = "[llm-proxy] "

// Event logs one of the event lines of R-370: the prefix and words as the message, then pairs of alternating names and values in their order. A
// text log shows the pairs as name=value, a JSON log as members: numbers stay numbers, durations are in seconds.
func Event(ctx context.Context, log *slog.Logger, level slog.Level, event string, pairs ...any) {
	if !log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		attrs = append(attrs, slog.Any(fmt.Sprint(pairs[i]), plain(pairs[i+1])))
	}
	log.LogAttrs(ctx, level, EventPrefix+event, attrs...) //nolint:sloglint // the words are the message, by R-370
}

// lineKey marks the context of what Line writes.
type lineKey struct{}

// Line writes a line at INFO whose wording is fixed, each time: somebody counts such lines.
func Line(ctx context.Context, log *slog.Logger, line string) {
	log.InfoContext(context.WithValue(ctx, lineKey{}, true), line) //nolint:sloglint // the wording is the caller's
}

// plain keeps what both kinds of logs show well, and makes text of the rest.
func plain(value any) any {
	switch slog.AnyValue(value).Kind() {
	case slog.KindAny, slog.KindGroup, slog.KindLogValuer:
		return fmt.Sprint(value)
	default:
		return value
	}
}

// visible keeps whole what the text handler would cut off at a character that can't be read, and shows what a terminal would obey.
func visible(_ []string, a slog.Attr) slog.Attr {
	text := ""
	switch v := a.Value.Any().(type) {
	case string:
		text = v
	case error:
		text = v.Error()
	}
	if strings.ContainsAny(text, "\x1b\uFFFD") || !utf8.ValidString(text) {
		a.Value = slog.StringValue(strings.Map(func(r rune) rune {
			if r == '\x1b' || r == utf8.RuneError {
				return '?'
			}
			return r
		}, text))
	}
	return a
}

// inSeconds shows durations as numbers, which other programs can compare.
func inSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}
