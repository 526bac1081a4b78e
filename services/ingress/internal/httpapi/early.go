package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/pending"
)

// early is what a stream needs that has its status line before the answer has begun.
type early struct {
	received time.Time
	caller   caller
}

// streamEarly answers a client whose upstream is silent with a stream: it gets the status line and comments until the answer begins.
// Proxies cut connections on which nothing comes. The headers that say who answers are not known yet, and what fails from now on can only be an
// event.
func (a *API) streamEarly(x *exchange, pend *pending.Request, received time.Time, served *serving) {
	x.SetStatusCode(fasthttp.StatusOK)
	x.Response.Header.SetContentType("text/event-stream; charset=utf-8")
	setStreamHeaders(&x.Response)
	s := a.newStream(x, pend, served)
	s.events, s.early = true, &early{received: received, caller: x.caller()}
	a.stream(x, s)
}

// await writes comments until the answer begins. begun is false when the stream has ended with that.
func (s *stream) await(w io.Writer) (begun bool, err error) {
	for {
		if err := s.writer.write(w, ping); err != nil {
			s.left()
			return false, err
		}
		raw, err := s.pend.Head()
		if errors.Is(err, pending.ErrSilent) {
			continue
		}
		if err != nil {
			s.early.failed(err)
			return false, s.breakOff(w, err)
		}
		s.api.Metrics.committed(time.Since(s.early.received))
		head, err := s.api.heads.parse(raw)
		switch {
		case err != nil:
			s.api.Pending.Fail(s.pend, pending.ErrMalformed)
			return false, s.breakOff(w, err)
		case head.events:
			s.served.answeredBy(head)
			return true, nil
		default:
			return false, s.refuse(w, head)
		}
	}
}

// refuse ends the stream with an answer that is an error.
func (s *stream) refuse(w io.Writer, head *head) error {
	parts, _, err := s.api.gather(s.pend)
	if err != nil {
		return s.breakOff(w, err)
	}
	s.status = head.status
	body := bytes.Join(parts, nil)
	if head.refusal {
		s.early.caller.refused(head.status, codeOf(body), nil)
	}
	if err := s.writer.write(w, s.errors.AppendEventOf(nil, body)); err != nil {
		return fmt.Errorf("ending a stream: %w", err)
	}
	return nil
}

// failed logs that no answer came, unless nobody waits for one.
func (e *early) failed(err error) {
	if !errors.Is(err, pending.ErrGone) {
		f := lostFault(err)
		e.caller.refused(f.Status(), f.PublicCode(), f.Cause)
	}
}
