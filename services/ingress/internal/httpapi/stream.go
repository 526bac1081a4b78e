package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/surface"
)

// stream is the body of an answer that is sent on as it comes, for fasthttp.
type stream struct {
	api    *API
	pend   *pending.Request
	pass   *clientkey.Pass
	served *serving
	errors surface.Errors
	status int
	events bool // it is a stream of events
	writer deadlineWriter

	taken  uint64
	done   credit
	last   []byte // the last bytes that were written
	buf    []byte // for small data that came together
	closed bool
	early  *early // nil when the answer has begun
}

func (a *API) newStream(x *exchange, pend *pending.Request, served *serving) *stream {
	return &stream{
		api: a, pend: pend, pass: x.pass, served: served, errors: surface.ErrorsOf(x.surface), status: x.Response.StatusCode(), writer: deadlineWriter{conn: x.Conn()},
	}
}

// stream sets the body of the response.
func (a *API) stream(x *exchange, s *stream) {
	if s.events {
		s.pend.SendPings()
	}
	if !x.Request.Header.IsHTTP11() {
		x.hijack(s, &s.writer)
		return
	}
	// Without data there would be nothing to flush the headers with.
	x.Response.ImmediateHeaderFlush = !s.pend.Ready()
	x.Response.SetBodyStream(s, -1)
}

// hijack serves a client of HTTP/1.0, which knows no chunks: its stream ends with the connection.
func (x *exchange) hijack(body io.WriterTo, writer *deadlineWriter) {
	x.Response.Header.SetContentLength(-2) // neither a length nor chunks
	header := x.Response.Header.AppendBytes(nil)
	x.HijackSetNoResponse(true)
	x.Hijack(func(c net.Conn) {
		if closer, ok := body.(io.Closer); ok {
			defer closer.Close() //nolint:errcheck // it has no error
		}
		if writer.write(c, header) == nil {
			_, _ = body.WriteTo(c) // the connection ends in any case
		}
	})
}

var ping = []byte(": ping\n\n")

// WriteTo writes the stream to its end. An error means that the client has gone.
func (s *stream) WriteTo(w io.Writer) (int64, error) {
	if s.early != nil {
		if begun, err := s.await(w); !begun {
			return int64(s.taken), err
		}
	}
	var p pending.Part
	for {
		p = s.pend.Next(p.Data)
		err := s.writeAll(w, p.Data)
		if p.Working {
			s.api.sendCredit(s.pend, s.taken)
		}
		if err == nil && p.Ping && s.atBoundary() {
			err = s.writer.write(w, ping)
		}
		if err != nil {
			s.left()
			return int64(s.taken), err
		}
		switch {
		case p.Err != nil:
			return int64(s.taken), s.breakOff(w, p.Err)
		case p.End:
			return int64(s.taken), nil
		}
	}
}

// left notes that the client has gone.
func (s *stream) left() {
	s.served.broke(pending.ErrGone)
	s.api.Pending.Fail(s.pend, pending.ErrGone)
}

// boundary is how many bytes show whether an event has ended.
const boundary = len("\n\r\n")

// writeAll writes data that is ready together with as few calls as possible. It lets go of each part as soon as the client has it, because more
// comes in the place of it.
func (s *stream) writeAll(w io.Writer, parts [][]byte) error {
	for len(parts) > 0 {
		n, size := run(parts)
		data := parts[0]
		if n > 1 {
			s.buf = slices.Grow(s.buf[:0], size)
			for _, p := range parts[:n] {
				s.buf = append(s.buf, p...)
			}
			data = s.buf
		}
		if err := s.writer.write(w, data); err != nil {
			return err
		}
		if s.taken == 0 && s.events {
			s.served.first()
		}
		s.last = append(s.last[:0], data[max(len(data)-boundary, 0):]...)
		clear(parts[:n])
		parts = parts[n:]
		s.taken += uint64(size)
		s.api.grant(s.pend, &s.done, s.taken)
	}
	return nil
}

// run gives how many of the parts fit into one piece, at least one, and their size.
func run(parts [][]byte) (n, size int) {
	for _, p := range parts {
		if n > 0 && size+len(p) > maxPiece {
			break
		}
		n, size = n+1, size+len(p)
	}
	return n, size
}

// atBoundary says whether an event may be put in here.
func (s *stream) atBoundary() bool {
	return len(s.last) == 0 || bytes.HasSuffix(s.last, []byte("\n\n")) || bytes.HasSuffix(s.last, []byte("\n\r\n"))
}

// breakOff ends a stream that can't go on, in sight of the client.
func (s *stream) breakOff(w io.Writer, err error) error {
	s.served.broke(err)
	if errors.Is(err, pending.ErrGone) || !s.events { // what is no event can only show that it is not whole by the end of the connection
		return err
	}
	var event []byte
	if !s.atBoundary() {
		event = append(event, "\n\n"...)
	}
	if err := s.writer.write(w, s.errors.AppendEvent(event, lostFault(err))); err != nil {
		return fmt.Errorf("ending a stream: %w", err)
	}
	return nil
}

// SupportsBodyWriteTo makes fasthttp use WriteTo.
func (s *stream) SupportsBodyWriteTo() bool { return true }

// Read is never used, since fasthttp uses WriteTo.
func (s *stream) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close ends the exchange. fasthttp calls it whatever happened to the body.
func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.api.Pending.Remove(s.pend)
	s.api.settled(s.pass, s.pend.End())
	s.api.Metrics.sent.Add(float64(s.taken))
	s.served.end(s.status)
	return nil
}

var _ fasthttp.BodyWriterTo = (*stream)(nil)
