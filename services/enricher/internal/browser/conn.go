package browser

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/go-rod/rod/lib/cdp"
	"github.com/go-rod/rod/lib/proto"
	"github.com/go-rod/rod/lib/utils"
)

// firstUnawaited is the number of the first message whose answer nobody waits for: far above those that the client gives, and with as many below
// the end of what Chromium takes, which are 31 bits.
const firstUnawaited = 1 << 30

// conn speaks with one Chromium. Rod's own pages keep a queue without bound for each that listens to events; here an event goes to the one session
// that it is for.
type conn struct {
	client    *cdp.Client
	pipe      *pipe
	unawaited atomic.Uint32
	done      chan struct{} // closed when nothing more will come

	mu       sync.Mutex
	sessions map[string]*session
}

// session is one target of Chromium's that is attached to, or Chromium itself.
type session struct {
	conn   *conn
	id     string // "" for Chromium itself
	events chan *cdp.Event
	gone   chan struct{} // closed when nobody reads events any more
}

// newConn makes a connection, whose owner runs route until the pipe has ended.
func newConn(in, out *os.File) *conn {
	c := &conn{
		client: cdp.New().Logger(utils.LoggerQuiet), pipe: &pipe{in: bufio.NewReaderSize(in, 64<<10), out: out}, done: make(chan struct{}),
		sessions: map[string]*session{},
	}
	c.client.Start(c.pipe)
	return c
}

// route hands events on until the pipe has ended. An event waits until its session takes it, which therefore never waits for an answer itself.
func (c *conn) route() {
	defer close(c.done)
	for event := range c.client.Event() {
		c.mu.Lock()
		s := c.sessions[event.SessionID]
		c.mu.Unlock()
		if s == nil {
			continue
		}
		select {
		case s.events <- event:
		case <-s.gone:
		}
	}
}

// root is the session of Chromium itself. It has no events.
func (c *conn) root() *session { return &session{conn: c} }

// listen gives a session whose events are read until leave.
func (c *conn) listen(id proto.TargetSessionID) *session {
	s := &session{conn: c, id: string(id), events: make(chan *cdp.Event, 64), gone: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[s.id] = s
	return s
}

// listening says whether there are sessions.
func (c *conn) listening() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.sessions) > 0
}

func (s *session) leave() {
	s.conn.mu.Lock()
	delete(s.conn.sessions, s.id)
	s.conn.mu.Unlock()
	close(s.gone)
}

// call asks, waits for the answer, and reads it into answer unless that is nil.
func (s *session) call(ctx context.Context, question proto.Request, answer any) error {
	got, err := s.conn.client.Call(ctx, s.id, question.ProtoReq(), question)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return fmt.Errorf("%s: %w", question.ProtoReq(), err)
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(got, answer); err != nil {
		return fmt.Errorf("%s: %w", question.ProtoReq(), err)
	}
	return nil
}

// tell says something without waiting for an answer, in order with what was said before. A pipe that is gone is noticed where it is read.
func (s *session) tell(what proto.Request) {
	message, err := json.Marshal(cdp.Request{ID: firstUnawaited + int(s.conn.unawaited.Add(1)%firstUnawaited), SessionID: s.id, Method: what.ProtoReq(), Params: what})
	if err == nil {
		_ = s.conn.pipe.Send(message)
	}
}
