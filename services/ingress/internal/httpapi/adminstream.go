package httpapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// liveSilence is how long the admin stream may be silent.
const liveSilence = 15 * time.Second

// stream of news for operators, for fasthttp: the status when it has changed, new log lines, new requests, and what can't be read. A reader that
// was too slow is told to read all again.
type adminStream struct {
	api    *API
	writer deadlineWriter
	last   time.Time // that something was written
	seen   uint64    // events
	closed bool
}

// streamNews serves the admin stream.
func streamNews(x *exchange) error {
	a := x.api
	if x.IsHead() { // nobody reads
		setEventHeaders(&x.Response)
		return nil
	}
	if !a.news.enter() {
		return &fault.Fault{
			Kind: fault.RateLimited, Code: "too_many_streams", Message: "Too many readers follow the gateway at the moment", RetryAfter: retryAfter,
		}
	}
	setEventHeaders(&x.Response)
	s := &adminStream{api: a, writer: deadlineWriter{conn: x.Conn()}}
	if !x.Request.Header.IsHTTP11() {
		x.hijack(s, &s.writer)
		return nil
	}
	x.Response.ImmediateHeaderFlush = true
	x.Response.SetBodyStream(s, -1)
	return nil
}

func setEventHeaders(resp *fasthttp.Response) {
	resp.Header.SetContentType("text/event-stream; charset=utf-8")
	setStreamHeaders(resp)
}

// hello is the first event.
type hello struct {
	Version   string     `json:"version"`
	StartedAt query.Time `json:"started_at"` // of this ingress
	Now       query.Time `json:"now"`
}

// WriteTo writes news until the reader goes or the service stops.
func (s *adminStream) WriteTo(w io.Writer) (int64, error) {
	greeting, err := json.Marshal(hello{s.api.Version, query.Time{Time: s.api.started}, query.Time{Time: time.Now()}})
	if err != nil {
		return 0, fmt.Errorf("encoding a greeting: %w", err)
	}
	if err := s.write(w, event("hello", greeting)); err != nil {
		return 0, err
	}
	s.api.news.look(s.api.Queries())
	now, seen := s.api.news.now()
	s.seen = seen
	if err := s.write(w, now...); err != nil {
		return 0, err
	}
	tick := time.NewTicker(liveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.api.Queries().Done():
			return 0, nil
		}
		if s.api.Stopping() { // the reader comes back, to another ingress
			return 0, nil
		}
		if err := s.tell(w); err != nil {
			return 0, err
		}
	}
}

// tell writes what is new, or a sign of life when there was nothing for long.
func (s *adminStream) tell(w io.Writer) error {
	s.api.news.look(s.api.Queries())
	events, seen, missed := s.api.news.since(s.seen)
	s.seen = seen
	switch {
	case missed:
		return s.write(w, event("reset", []byte("{}")))
	case len(events) > 0:
		return s.write(w, events...)
	case time.Since(s.last) >= liveSilence:
		return s.write(w, ping)
	}
	return nil
}

func (s *adminStream) write(w io.Writer, events ...[]byte) error {
	for _, e := range events {
		if err := s.writer.write(w, e); err != nil {
			return err
		}
		s.last = time.Now()
	}
	return nil
}

// SupportsBodyWriteTo makes fasthttp use WriteTo.
func (s *adminStream) SupportsBodyWriteTo() bool { return true }

// Read is never used, since fasthttp uses WriteTo.
func (s *adminStream) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close ends the exchange. fasthttp calls it whatever happened to the body.
func (s *adminStream) Close() error {
	if !s.closed {
		s.closed = true
		s.api.news.leave()
	}
	return nil
}

var _ fasthttp.BodyWriterTo = (*adminStream)(nil)
