package fakellm

import (
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"
)

// ServeHTTP records the request and plays its answer.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		s.list(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client left while sending
	}
	req := &Request{Method: r.Method, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body, At: time.Now()}
	answer, whole := s.begin(req), false
	defer func() {
		gone := r.Context().Err() != nil
		s.answered(req)
		s.update(func() {
			req.Ended = time.Now()
			if gone && !whole {
				req.Left = req.Ended
			}
		})
	}()
	whole = s.play(r.Context(), w, req, answer(*req))
}

// answered ends the time in which a request counts as being answered. That is before its last byte goes out: a client that has all of an answer may send the next
// request before this server has come back from its write.
func (s *Server) answered(req *Request) {
	s.update(func() {
		if !req.answered {
			req.answered = true
			s.active--
		}
	})
}

// begin records a request and takes its answer in the order of arrival.
func (s *Server) begin(req *Request) (answer func(Request) Answer) {
	s.update(func() {
		s.requests = append(s.requests, req)
		s.active++
		s.most = max(s.most, s.active)
		answer = s.handle
		if len(s.queue) > 0 {
			next := s.queue[0]
			s.queue = s.queue[1:]
			answer = func(Request) Answer { return next }
		}
	})
	if answer == nil {
		return func(Request) Answer {
			return Error(http.StatusInternalServerError, "fakellm: no answer is left in the queue")
		}
	}
	return answer
}

// play writes the answer and says whether it came to its end.
func (s *Server) play(ctx context.Context, w http.ResponseWriter, req *Request, a Answer) bool {
	if !s.pause(ctx, a.Delay) {
		return false
	}
	if a.Raw != nil {
		conn := hijack(w)
		defer conn.Close() //nolint:errcheck // the client may have closed it
		s.answered(req)
		_, err := conn.Write(a.Raw)
		return err == nil
	}
	if a.Status != noStatus && !s.write(ctx, w, req, a) {
		return false
	}
	switch a.End {
	case Cut:
		panic(http.ErrAbortHandler) // closes the connection without the last chunk
	case Reset:
		reset(hijack(w))
	case Hang:
		select {
		case <-ctx.Done():
		case <-s.stop:
		}
		return false
	case Proper:
	}
	return true
}

func (s *Server) write(ctx context.Context, w http.ResponseWriter, req *Request, a Answer) bool {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	if len(a.Chunks) == 0 && a.End == Proper {
		w.Header().Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	status := a.Status
	if status == 0 {
		status = http.StatusOK
	}
	w.WriteHeader(status)
	flush := http.NewResponseController(w)
	if len(a.Chunks) == 0 && a.End == Proper {
		s.answered(req)
	}
	if !send(w, flush, a.Body) {
		return false
	}
	for i, c := range a.Chunks {
		if !s.pause(ctx, c.Gap) {
			return false
		}
		if i == len(a.Chunks)-1 && a.End == Proper {
			s.answered(req)
		}
		if !send(w, flush, []byte(c.Data)) {
			return false
		}
	}
	return true
}

func send(w io.Writer, flush *http.ResponseController, data []byte) bool {
	_, err := w.Write(data)
	return err == nil && flush.Flush() == nil
}

// pause waits and says whether the client is still there.
func (s *Server) pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.stop:
	}
	return false
}

func hijack(w http.ResponseWriter) net.Conn {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	return conn
}

// reset closes a connection so that the other side sees a reset.
func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
