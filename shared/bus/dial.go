package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// How the connection behaves.
const (
	reconnectWait = 250 * time.Millisecond // between two rounds over the servers
	pingInterval  = 2 * time.Second        // a server that answers none of maxPings is gone, though its connection is open
	maxPings      = 2

	// syncQueue is how many messages may wait in a subscription that is read one by one: answers to one question, as topology asks them. The default
	// of nats.go, 65536, takes half a megabyte for each question.
	syncQueue = 64

	firstDialPause = 100 * time.Millisecond
	lastDialPause  = time.Second
	dialLogEvery   = 10 * time.Second
)

// dial connects, trying until ctx ends.
func dial(ctx context.Context, cfg Config, more ...nats.Option) (*nats.Conn, error) {
	opts, err := options(cfg, more)
	if err != nil {
		return nil, err
	}
	var logged time.Time
	for pause := firstDialPause; ; pause = min(2*pause, lastDialPause) {
		nc, err := opts.Connect()
		if err == nil {
			return nc, nil
		}
		if time.Since(logged) >= dialLogEvery {
			logged = time.Now()
			cfg.Logger.Warn("NATS can't be reached, trying again", slog.String("url", shown(cfg.URL)), slog.Any("error", err))
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

// options gives how to connect. What is wrong with a file of the identity is an error: no waiting mends it.
func options(cfg Config, more []nats.Option) (nats.Options, error) {
	opts := nats.GetDefaultOptions()
	identity, err := cfg.Identity.options()
	if err != nil {
		return opts, err
	}
	all := slices.Concat(behaviour(cfg), identity, more)
	if cfg.InProcess != nil {
		all = append(all, nats.InProcessServer(cfg.InProcess))
	} else {
		opts.Servers = strings.Split(cfg.URL, ",")
	}
	for _, set := range all {
		if err := set(&opts); err != nil {
			return opts, fmt.Errorf("preparing the connection to NATS: %w", err)
		}
	}
	return opts, nil
}

func behaviour(cfg Config) []nats.Option {
	log := cfg.Logger
	interval := pingInterval
	if cfg.InProcess != nil { // it stands still only together with this process
		interval *= 5
	}
	opts := []nats.Option{
		nats.Name(cfg.Name), nats.MaxReconnects(-1), nats.ReconnectWait(reconnectWait),
		nats.PingInterval(interval), nats.MaxPingsOutstanding(maxPings), nats.SyncQueueLen(syncQueue),
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
	if cfg.Name != "" { // services with rights of their own can't hear each other's answers
		opts = append(opts, nats.CustomInboxPrefix(nats.InboxPrefix+cfg.Name))
	}
	return opts
}

func (i Identity) options() (opts []nats.Option, err error) {
	if i.Credentials != "" {
		if _, err := os.Stat(i.Credentials); err != nil { // it is not read before there is a server
			return nil, fmt.Errorf("looking for the credentials for NATS: %w", err)
		}
		opts = append(opts, nats.UserCredentials(i.Credentials))
	}
	if i.NkeySeed != "" {
		nkey, err := nats.NkeyOptionFromSeed(i.NkeySeed)
		if err != nil {
			return nil, fmt.Errorf("reading the nkey for NATS in %s: %w", i.NkeySeed, err)
		}
		opts = append(opts, nkey)
	}
	if i.CA != "" {
		opts = append(opts, nats.RootCAs(i.CA))
	}
	if i.Cert != "" {
		opts = append(opts, nats.ClientCert(i.Cert, i.Key))
	}
	return opts, nil
}
