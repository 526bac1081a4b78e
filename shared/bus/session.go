package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"hydrallm/shared/topology"
)

// How a session looks after the server.
const (
	lookEvery  = 2 * time.Second        // between two looks whether the streams answer
	lookLimit  = 2 * time.Second        // for the answer
	maxSilent  = 2                      // looks without an answer until they count as missing
	firstPause = 100 * time.Millisecond // between two tries to bring the server to the wanted state; doubled each time
	lastPause  = 250 * time.Millisecond
)

// session keeps the server in the state that the pipeline needs, for as long as the bus is open. Streams and buckets in memory are gone when
// a server comes back from an outage, so it creates what is missing after each reconnection, and when somebody meets something that is not
// there. Then a new epoch begins: whoever reads from the server starts over, because what it knows may be outdated.
type session struct {
	server server
	log    *slog.Logger
	doubts chan struct{} // has room for one: something may be missing

	mu     sync.Mutex
	sound  bool          // everything was there at the last look, and the connection was not lost since
	losses int64         // of the connection
	breaks int64         // losses, and times that something was missing
	dry    int           // pullers that get nothing
	since  time.Time     // when the epoch began, by the server's clock
	epoch  chan struct{} // closed when the next epoch begins

	life   context.Context //nolint:containedctx // from start to stop
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// server is the server as a session sees it.
type server interface {
	online() bool                                          // whether the connection is up
	ensure(ctx context.Context) (now time.Time, err error) // creates what is missing, and gives the time
	look(ctx context.Context) error                        // says whether something is missing
}

func newSession(s server, log *slog.Logger) *session {
	return &session{server: s, log: log, doubts: make(chan struct{}, 1), epoch: make(chan struct{})}
}

// start returns when the server is in the wanted state, however long that takes; with an error at the end of ctx, or when the server never
// will be in it.
func (s *session) start(ctx context.Context) error {
	if err := s.restore(ctx); err != nil {
		return err
	}
	s.life, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.wg.Go(func() { s.run(s.life) })
	return nil
}

func (s *session) stop() {
	s.cancel()
	s.wg.Wait()
}

func (s *session) run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	silent := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.doubts:
		case <-ticker.C:
			if silent = s.look(ctx, silent); silent < maxSilent {
				continue
			}
		}
		silent = 0
		s.interrupt()
		if err := s.restore(ctx); err != nil && ctx.Err() == nil {
			s.log.Error("NATS streams can't be prepared", slog.Any("error", err))
		}
	}
}

// look asks for a sign of life, so that readiness is true also when nobody uses the streams. It gives the number of looks in a row that had
// no answer.
func (s *session) look(ctx context.Context, silent int) int {
	if !s.server.online() {
		return 0 // the reconnection is a doubt
	}
	ctx, cancel := context.WithTimeout(ctx, lookLimit)
	defer cancel()
	switch err := s.server.look(ctx); {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return silent + 1
	}
	return maxSilent
}

// doubt has the session look at once whether everything is there. It does not block.
func (s *session) doubt() {
	select {
	case s.doubts <- struct{}{}:
	default:
	}
}

// lose takes in that the connection is lost.
func (s *session) lose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sound = false
	s.losses++
	s.breaks++
}

func (s *session) lossCount() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.losses
}

func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sound = false
	s.breaks++
}

// moment is what whoever reads from the server has to know of the time when it began.
type moment struct {
	epoch          <-chan struct{} // closed when the next one begins
	losses, breaks int64
}

func (s *session) now() moment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return moment{s.epoch, s.losses, s.breaks}
}

// restore brings the server to the wanted state and begins an epoch. It goes on until it succeeds, ctx ends, or the server refuses for good.
func (s *session) restore(ctx context.Context) error {
	pause := firstPause
	for try := 1; ; try++ {
		losses := s.lossCount()
		now, err := s.server.ensure(ctx)
		if err == nil {
			s.begin(losses, now)
			return nil
		}
		if topology.Final(err) || ctx.Err() != nil {
			return fmt.Errorf("preparing streams: %w", err)
		}
		s.log.Warn("NATS streams are not ready, trying again", slog.Int("try", try), slog.Any("error", err))
		if err := s.rest(ctx, pause); err != nil {
			return err
		}
		pause = min(2*pause, lastPause)
	}
}

// rest waits for a while, or until the connection is back.
func (s *session) rest(ctx context.Context, pause time.Duration) error {
	var enough <-chan time.Time
	var back <-chan struct{}
	if s.server.online() {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		enough = timer.C
	} else {
		back = s.doubts
	}
	select {
	case <-enough:
	case <-back:
	case <-ctx.Done():
		return fmt.Errorf("preparing streams: %w", ended(ctx))
	}
	return nil
}

// begin begins an epoch, unless the connection was lost since there were losses.
func (s *session) begin(losses int64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.losses != losses {
		return // the reconnection leads here again
	}
	s.sound, s.since = true, now
	select {
	case <-s.doubts: // of the epoch that ends
	default:
	}
	close(s.epoch)
	s.epoch = make(chan struct{})
}

// knows says whether a message was stored in this epoch. What is older may have been delivered before an outage in which the server has forgotten
// that, although it has the message.
func (s *session) knows(stored time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !stored.Before(s.since)
}

// next gives a channel that is closed when another epoch begins.
func (s *session) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch
}

// await returns when everything is there, or at the end of ctx.
func (s *session) await(ctx context.Context) error {
	for {
		s.mu.Lock()
		sound, epoch := s.sound, s.epoch
		s.mu.Unlock()
		if sound {
			return nil
		}
		select {
		case <-epoch:
		case <-ctx.Done():
			return fmt.Errorf("waiting for NATS: %w", ended(ctx))
		}
	}
}

// drip counts the pullers that get nothing.
func (s *session) drip(change int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dry += change
}

// ready says whether everything is there and everything that reads gets something.
func (s *session) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sound && s.dry == 0 && s.server.online()
}

// ended says why ctx has ended, in its own terms too, by which the others know a cancellation.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return ctx.Err()
}
