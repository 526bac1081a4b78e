package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// How the connection behaves.
const (
	reconnectWait = 250 * time.Millisecond // between two rounds over the servers
	pingInterval  = 5 * time.Second        // a server that answers none of maxPings is gone, though its connection is open
	maxPings      = 3

	// syncQueue is how many messages may wait in a subscription that is read one by one: answers to one question, as topology asks them. The default
	// of nats.go, 65536, takes half a megabyte for each question.
	syncQueue = 64

	firstDialPause = 100 * time.Millisecond
	lastDialPause  = time.Second
	dialLogEvery   = 10 * time.Second
)

// dial connects, trying until ctx ends.
func dial(ctx context.Context, cfg Config, more ...nats.Option) (*nats.Conn, error) {
	url, opts := cfg.URL, append(options(cfg), more...)
	if cfg.InProcess != nil {
		url = ""
	}
	var logged time.Time
	for pause := firstDialPause; ; pause = min(2*pause, lastDialPause) {
		nc, err := nats.Connect(url, opts...)
		if err == nil {
			return nc, nil
		}
		if time.Since(logged) >= dialLogEvery {
			logged = time.Now()
			cfg.Logger.Warn("NATS can't be reached, trying again", slog.String("url", shown(url)), slog.Any("error", err))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, errors.Join(err, fmt.Errorf("waiting for NATS: %w", ended(ctx)))
		}
	}
}

// shown is a list of addresses without the passwords that they may hold.
func shown(urls string) string {
	list := strings.Split(urls, ",")
	for i, text := range list {
		if at := strings.LastIndexByte(text, '@'); at >= 0 {
			list[i] = text[at+1:]
		}
	}
	return strings.Join(list, ",")
}

func options(cfg Config) []nats.Option {
	log := cfg.Logger
	opts := []nats.Option{
		nats.Name(cfg.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(maxPings), nats.SyncQueueLen(syncQueue),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subj := ""
			if sub != nil {
				subj = sub.Subject
			}
			log.Error("NATS error", slog.String("subject", subj), slog.Any("error", err))
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			if err := nc.LastError(); err != nil && cfg.OnLost != nil {
				cfg.OnLost(err)
			}
		}),
	}
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	if cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(cfg.InProcess))
	}
	return opts
}
