package fakellm

import (
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"hydrallm/shared/testkit/await"
)

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	addr string
	stop chan struct{}

	mu       sync.Mutex
	queue    []Answer
	handle   func(Request) Answer
	requests []*Request
	models   []string // that it offers
	listings []string // Authorization of each listing
	pages    map[string]string
	active   int
	most     int
	changed  chan struct{} // closed and replaced at every change of the requests
}

// Start runs a server until the end of the test. Requests are answered by the queue of Queue in order, and, when that is empty, by the function
// of Handle; without either the answer is 500. A first set of answers may be queued here.
func Start(tb testing.TB, answers ...Answer) *Server {
	tb.Helper()
	return StartAt(tb, "127.0.0.1", answers...)
}

// StartAt is Start on an address of the machine, for example one that containers reach.
func StartAt(tb testing.TB, host string, answers ...Answer) *Server {
	tb.Helper()
	ln, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		tb.Fatalf("listening for the fake upstream: %v", err)
	}
	s := &Server{addr: ln.Addr().String(), stop: make(chan struct{}), queue: answers, changed: make(chan struct{})}
	hs := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := hs.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			tb.Errorf("serving the fake upstream: %v", err)
		}
	})
	tb.Cleanup(func() {
		close(s.stop)
		_ = hs.Close() // handlers see their connection go
		serving.Wait()
		s.wait(func() bool { return s.active == 0 }, await.Limit)
	})
	return s
}

// URL is the root of the server, without a path.
func (s *Server) URL() string { return "http://" + s.addr }

// Queue adds answers for the next requests, one each.
func (s *Server) Queue(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, answers...)
}

// Handle sets the function that answers when the queue is empty. It runs in the goroutine of each request.
func (s *Server) Handle(fn func(Request) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handle = fn
}

// Requests gives the requests so far, in order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Request, len(s.requests))
	for i, r := range s.requests {
		list[i] = *r
	}
	return list
}

// Forget drops the requests so far that have been answered, so that a long test does not keep them.
func (s *Server) Forget() {
	s.update(func() {
		s.requests = slices.DeleteFunc(s.requests, func(r *Request) bool { return !r.Ended.IsZero() })
	})
}

// MaxActive is the largest number of requests that were being answered at the same time.
func (s *Server) MaxActive() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// Active is the number of requests being answered now.
func (s *Server) Active() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active
}

// Await gives the requests as soon as ok accepts them. The test fails when that takes as long as await.Limit.
func (s *Server) Await(tb testing.TB, ok func([]Request) bool) []Request {
	tb.Helper()
	var list []Request
	done := s.wait(func() bool {
		list = list[:0]
		for _, r := range s.requests {
			list = append(list, *r)
		}
		return ok(list)
	}, await.Limit)
	if !done {
		tb.Fatalf("the fake upstream never saw what the test waits for; it has %d requests", len(list))
	}
	return slices.Clone(list)
}

// AwaitCount is Await for a number of requests.
func (s *Server) AwaitCount(tb testing.TB, n int) []Request {
	tb.Helper()
	return s.Await(tb, func(r []Request) bool { return len(r) >= n })
}

// wait calls ok, with mu held, at every change until it gives true.
func (s *Server) wait(ok func() bool, limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		s.mu.Lock()
		good, changed := ok(), s.changed
		s.mu.Unlock()
		if good {
			return true
		}
		select {
		case <-changed:
		case <-timer.C:
			return false
		}
	}
}

// update changes the records and wakes whoever waits for them.
func (s *Server) update(fn func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fn()
	close(s.changed)
	s.changed = make(chan struct{})
}
