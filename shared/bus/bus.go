// Package bus is the only door to NATS: work queues, reply frames, control messages, facts, key-value buckets and queries, in the terms of
// the pipeline.
//
// Ordering and back-pressure: work of one stage may be handled in any order. The reply frames of one request arrive in order or the gap is
// visible in their sequence numbers. A worker may be ahead of the client by Window bytes; then Reply.Flush waits for credit. Facts wait
// in their stream for a slow session-writer; a full work stream refuses new requests instead of dropping old ones.
package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// Config says where the NATS server is.
type Config struct {
	URL         string          // address of a server or cluster; ignored with InProcess
	Credentials string          // path of a credentials file, or ""
	Name        string          // name of the connection, shown by the server
	InProcess   InProcess       // a server in this process, or nil
	Topology    topology.Config // wanted streams and buckets
	Logger      *slog.Logger    // required
	OnLost      func(error)     // called when the connection is closed for good and Close was not called; may be nil
	ConnectWait time.Duration   // how long Connect waits for a server that is not there yet; 0 = 30s
}

// InProcess gives connections to a server in the same process.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// Bus is one connection to NATS. It is safe for concurrent use.
type Bus struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	bodies jetstream.ObjectStore
	log    *slog.Logger

	maxInline int // largest body that travels inside a message

	control control
}

// Room for headers beside a body in one message.
const headerRoom = 64 << 10

const (
	drainLimit     = 30 * time.Second
	publishPending = 65536
	reconnectBytes = 64 << 20
)

// Connect reaches the server, waiting for one that is still starting, and brings its streams to the wanted state. The caller owns the Bus
// and must Close it.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	wait := cfg.ConnectWait
	if wait == 0 {
		wait = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	nc, err := dial(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	b := &Bus{nc: nc, log: cfg.Logger, maxInline: int(nc.MaxPayload()) - headerRoom}
	b.control.work = map[string]*Work{}
	if err := b.prepare(ctx, cfg); err != nil {
		nc.Close()
		return nil, err
	}
	return b, nil
}

func (b *Bus) prepare(ctx context.Context, cfg Config) error {
	var err error
	if b.js, err = jetstream.New(b.nc, jetstream.WithPublishAsyncMaxPending(publishPending)); err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	if err := retryUntilReady(ctx, func() error { return topology.Ensure(ctx, b.js, cfg.Topology, cfg.Logger) }); err != nil {
		return fmt.Errorf("preparing streams: %w", err)
	}
	if b.bodies, err = b.js.ObjectStore(ctx, subject.BodiesBucket); err != nil {
		return fmt.Errorf("opening the body store: %w", err)
	}
	return nil
}

func dial(ctx context.Context, cfg Config) (*nats.Conn, error) {
	var closing sync.Once
	opts := []nats.Option{
		nats.Name(cfg.Name), nats.MaxReconnects(-1), nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectBufSize(reconnectBytes),
		nats.DrainTimeout(drainLimit), nats.PingInterval(20 * time.Second), nats.MaxPingsOutstanding(3),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				cfg.Logger.Warn("NATS connection lost, reconnecting", slog.Any("error", err))
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) { cfg.Logger.Info("NATS connection is back") }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			subj := ""
			if sub != nil {
				subj = sub.Subject
			}
			cfg.Logger.Error("NATS error", slog.String("subject", subj), slog.Any("error", err))
		}),
		nats.ClosedHandler(func(nc *nats.Conn) {
			closing.Do(func() {
				if err := nc.LastError(); err != nil && cfg.OnLost != nil {
					cfg.OnLost(err)
				}
			})
		}),
	}
	if cfg.Credentials != "" {
		opts = append(opts, nats.UserCredentials(cfg.Credentials))
	}
	url := cfg.URL
	if cfg.InProcess != nil {
		url = ""
		opts = append(opts, nats.InProcessServer(cfg.InProcess))
	}
	var nc *nats.Conn
	err := retryUntilReady(ctx, func() (err error) {
		nc, err = nats.Connect(url, opts...)
		return err
	})
	return nc, err
}

// retryUntilReady calls try until it succeeds or ctx ends; a server that is starting needs a moment.
func retryUntilReady(ctx context.Context, try func() error) error {
	pause := 50 * time.Millisecond
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause):
			pause = min(2*pause, time.Second)
		}
	}
}

// Ready says whether the connection is up now.
func (b *Bus) Ready() bool { return b.nc.IsConnected() }

// Close flushes what is buffered and ends the connection. Subscriptions and consumers must have been stopped before.
func (b *Bus) Close(ctx context.Context) error {
	if err := b.nc.FlushWithContext(ctx); err != nil && b.nc.IsConnected() {
		b.log.Warn("flushing the NATS connection", slog.Any("error", err))
	}
	b.nc.Close()
	return nil
}
