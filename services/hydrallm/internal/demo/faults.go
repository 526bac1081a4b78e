package demo

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// States of a provider.
const (
	Healthy = "healthy"
	Broken  = "broken"  // every answer is a 503
	Slow    = "slow"    // nothing is said for longer than the gateway waits
	Limited = "limited" // every key is at its limit for a while
)

const (
	slowPause = 8 * time.Second // longer than headers_timeout of the configuration
	keyRest   = time.Minute
)

// faults is a switch before a provider. It is safe for concurrent use.
type faults struct {
	over chan struct{}

	mu       sync.Mutex
	state    string
	changed  chan struct{} // closed when the state changes
	requests int           // for answers
	stopped  bool
}

func newFaults() *faults {
	return &faults{over: make(chan struct{}), state: Healthy, changed: make(chan struct{})}
}

func (f *faults) put(state string) bool {
	switch state {
	case Healthy, Broken, Slow, Limited:
	default:
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = state
	close(f.changed)
	f.changed = make(chan struct{})
	return true
}

func (f *faults) now() (state string, requests int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.state, f.requests
}

// stop lets go who waits.
func (f *faults) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.stopped {
		f.stopped = true
		close(f.over)
	}
}

// wrap puts the switch before a handler. Lists of models always work: they are asked for now and then, and are no part of what is shown.
func (f *faults) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		f.mu.Lock()
		f.requests++
		state, changed := f.state, f.changed
		f.mu.Unlock()
		switch state {
		case Broken:
			refuse(w, http.StatusServiceUnavailable, "server_error", "", "This provider was broken on purpose.")
			return
		case Limited:
			w.Header().Set("Retry-After", strconv.Itoa(int(keyRest.Seconds())))
			refuse(w, http.StatusTooManyRequests, "requests", "rate_limit_exceeded", "Too many requests for this key.")
			return
		case Slow:
			timer := time.NewTimer(slowPause)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-changed:
			case <-r.Context().Done():
			case <-f.over:
			}
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers with an error in OpenAI's form.
func refuse(w http.ResponseWriter, status int, kind, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	given := "null"
	if code != "" {
		given = `"` + code + `"`
	}
	_, _ = strings.NewReader(fmt.Sprintf(`{"error":{"message":%q,"type":%q,"param":null,"code":%s}}`, message, kind, given)).WriteTo(w) // the gateway may have left
}
