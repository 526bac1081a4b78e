// Package bus is the only door to NATS: work queues, reply frames, control messages, facts, key-value buckets and queries, in the terms of
// the pipeline.
//
// Ordering and back-pressure: work of one stage may be handled in any order. The reply frames of one request arrive in order or the gap is
// visible in their sequence numbers. A worker may be ahead of the client by Window bytes; then Reply.Data waits for credit. Facts wait
// in their stream for a slow session-writer; a full work stream refuses new requests instead of dropping old ones.
package bus

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/subject"
	"hydrallm/shared/topology"
)

// Config says where the NATS server is.
type Config struct {
	URL       string                // address of a server or cluster; ignored with InProcess
	Identity  Identity              // who this is to a secured server
	Name      string                // of the connection, shown by the server; answers to its questions come below _INBOX.<Name>
	InProcess InProcess             // a server in this process, or nil
	Local     *Local                // of all services, when each of them is in this process; may be nil
	Topology  topology.Config       // wanted streams and buckets
	Logger    *slog.Logger          // required
	Metrics   prometheus.Registerer // may be nil
	OnLost    func(error)           // called when the connection is closed for good and Close was not called; may be nil
}

// Identity is how a connection proves to a secured server who it is, and the server to the connection. All are paths of files; "" = none.
type Identity struct {
	Credentials string // JWT and seed
	NkeySeed    string // seed of a user's nkey
	CA          string // authorities that the server's certificate must come from; with it the connection has to be encrypted
	Cert, Key   string // of the client
}

// InProcess gives connections to a server in the same process.
type InProcess interface {
	InProcessConn() (net.Conn, error)
}

// Bus is a service's access to NATS. It has a connection for the bytes of answers and one for everything else, so that acknowledgements, signs
// of life and cancellations do not queue behind megabytes. It is safe for concurrent use.
type Bus struct {
	id      string     // of the worker that this is, unique
	nc      *nats.Conn // keeps nothing for a server that is away: an acknowledgement that comes later may hit another message
	answers *nats.Conn
	js      jetstream.JetStream
	session *session
	metrics *metrics
	wanted  topology.Config
	bodies  jetstream.ObjectStore
	local   *Local // nil = bodies travel
	log     *slog.Logger

	maxInline int // largest body that travels inside a message

	facts      atomic.Pointer[jetstream.Stream] // nil until it is needed
	recordings atomic.Pointer[jetstream.Stream] // the same
	control    control
	unheard    unheard
}

// Room for headers beside a body in one message.
const headerRoom = 64 << 10

const (
	publishPending = 65536    // publishes that wait for their acknowledgement
	answerBytes    = 64 << 20 // of answers that are kept for a server that is away
)

// Connect reaches the server, waiting for one that is not there yet until ctx ends, and brings its streams to the wanted state, in which the
// Bus keeps them. The caller owns the Bus and must Close it.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	figures, err := newMetrics(cfg.Metrics)
	if err != nil {
		return nil, err
	}
	b := &Bus{id: strings.ToLower(rand.Text()), log: cfg.Logger, wanted: cfg.Topology, metrics: figures, local: cfg.Local}
	b.control.work = map[string]*Work{}
	b.unheard.off = cfg.InProcess != nil
	b.session = newSession(b, cfg.Logger)
	if err := b.connect(ctx, cfg); err != nil {
		b.disconnect()
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	return b, nil
}

func (b *Bus) connect(ctx context.Context, cfg Config) (err error) {
	if b.nc, err = dial(ctx, cfg, nats.ReconnectBufSize(-1), nats.DisconnectErrHandler(b.lost), nats.ReconnectHandler(b.back)); err != nil {
		return err
	}
	if b.answers, err = dial(ctx, cfg, nats.ReconnectBufSize(answerBytes)); err != nil {
		return err
	}
	b.maxInline = int(b.nc.MaxPayload()) - headerRoom
	if b.js, err = jetstream.New(b.nc, jetstream.WithPublishAsyncMaxPending(publishPending)); err != nil {
		return fmt.Errorf("opening JetStream: %w", err)
	}
	return b.session.start(ctx)
}

func (b *Bus) lost(_ *nats.Conn, err error) {
	b.session.lose()
	if err != nil {
		b.log.Warn("NATS connection lost, reconnecting", slog.Any("error", err))
	}
}

func (b *Bus) back(*nats.Conn) {
	b.log.Info("NATS connection is back")
	b.session.doubt()
}

// ensure brings the server to the wanted state. Subscriptions on the other connection are known to the server then, too: who asks for something
// in the new epoch hears the answer.
func (b *Bus) ensure(ctx context.Context) (now time.Time, err error) {
	if err := topology.Ensure(ctx, b.js, b.wanted, b.log); err != nil {
		return now, err
	}
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err := b.answers.FlushWithContext(ctx); err != nil {
		return now, fmt.Errorf("waiting for the connection for answers: %w", err)
	}
	work, err := topology.StreamInfo(ctx, b.nc, subject.WorkStream)
	if err != nil {
		return now, err
	}
	if b.bodies == nil {
		if b.bodies, err = b.js.ObjectStore(ctx, subject.BodiesBucket); err != nil {
			return now, fmt.Errorf("opening the body store: %w", err)
		}
	}
	return work.TimeStamp, nil
}

// look tells whether the server still is in the wanted state.
func (b *Bus) look(ctx context.Context) error { return topology.Look(ctx, b.js, b.wanted) }

func (b *Bus) online() bool { return b.nc.IsConnected() }

// WorkerID names this bus among all that take work.
func (b *Bus) WorkerID() string { return b.id }

// Repairs says whether workers send frames of answers again that were lost. With a server in this process none are.
func (b *Bus) Repairs() bool { return !b.unheard.off }

// Ready says whether the connections are up, everything on the server is as it should be, and whatever reads from it gets something.
func (b *Bus) Ready() bool { return b.session.ready() && b.answers.IsConnected() }

// Interrupted gives a channel that is closed when the connection or something on the server was lost and is back. What was in memory there
// may be gone then, so whoever keeps something there has to put it there again. Watches and consumers look after themselves.
func (b *Bus) Interrupted() <-chan struct{} { return b.session.next() }

// flushLimit bounds the wait for a server that is there but does not answer.
const flushLimit = 30 * time.Second

// subscribed waits until the server knows the subscriptions of nc. One that is away is told of them when it is back.
func subscribed(nc *nats.Conn) error {
	if !nc.IsConnected() { // a flush would wait for it
		return nil
	}
	if err := nc.FlushTimeout(flushLimit); err != nil && nc.IsConnected() {
		return fmt.Errorf("telling the server of a subscription: %w", err)
	}
	return nil
}

// Close flushes what is buffered, until ctx ends, and ends the connections. Subscriptions and consumers must have been stopped before.
func (b *Bus) Close(ctx context.Context) error {
	b.session.stop()
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	for _, nc := range []*nats.Conn{b.answers, b.nc} {
		if !nc.IsConnected() { // what is buffered is lost
			continue
		}
		if err := nc.FlushWithContext(ctx); err != nil && nc.IsConnected() {
			b.log.Warn("flushing a NATS connection", slog.Any("error", err))
		}
	}
	b.disconnect()
	return nil
}

func (b *Bus) disconnect() {
	for _, nc := range []*nats.Conn{b.answers, b.nc} {
		if nc != nil {
			nc.Close()
		}
	}
}
