package broker

import (
	"context"
	"fmt"
	"log/slog"
)

// logger passes the server's messages on. What the server calls fatal ends its start.
type logger struct {
	log   *slog.Logger
	fatal chan<- error // buffered; the first one counts
}

func (l *logger) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "NATS server", slog.String("text", fmt.Sprintf(format, v...)))
}

func (l *logger) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }
func (l *logger) Warnf(format string, v ...any)   { l.say(slog.LevelWarn, format, v) }
func (l *logger) Errorf(format string, v ...any)  { l.say(slog.LevelError, format, v) }
func (l *logger) Debugf(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }
func (l *logger) Tracef(format string, v ...any)  { l.say(slog.LevelDebug, format, v) }

func (l *logger) Fatalf(format string, v ...any) {
	select {
	case l.fatal <- fmt.Errorf(format, v...):
	default:
	}
}
