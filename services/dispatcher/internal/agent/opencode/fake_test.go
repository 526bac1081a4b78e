package opencode

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/pipenet"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) {
	if playProgram() {
		return
	}
	leaktest.Main(m)
}

// fake is an OpenCode server that says what it is told to. Its session is that of the fixtures.
type fake struct {
	// turn answers the message. It may tell events before.
	turn   func(f *fake, w http.ResponseWriter, r *http.Request)
	health string // "" for one that is well

	events  chan string
	cut     chan struct{} // closed to end the event stream
	mu      sync.Mutex
	seen    []string // methods and paths
	bodies  map[string]string
	headers http.Header // of the message
}

func newFake(turn func(f *fake, w http.ResponseWriter, r *http.Request)) *fake {
	return &fake{turn: turn, events: make(chan string), cut: make(chan struct{}), bodies: map[string]string{}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	name := r.Method + " " + r.URL.Path
	f.mu.Lock()
	f.seen = append(f.seen, name)
	f.bodies[name] = string(body)
	f.mu.Unlock()
	switch name {
	case "GET /global/health":
		if f.health == "" {
			f.health = `{"healthy":true,"version":"1.18.0"}`
		}
		answerJSON(w, http.StatusOK, f.health)
	case "POST /session":
		answerJSON(w, http.StatusOK, string(fixtures.Get("opencode/session-create.json").Body))
	case "GET /event":
		f.stream(w, r)
	case "POST /session/ses_fx01/message":
		f.headers = r.Header
		f.turn(f, w, r)
	default:
		answerJSON(w, http.StatusOK, "true")
	}
}

func (f *fake) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {\"type\":\"server.connected\",\"properties\":{}}\n\n")
	for {
		_ = http.NewResponseController(w).Flush()
		select {
		case e := <-f.events:
			_, _ = io.WriteString(w, "data: "+strings.ReplaceAll(e, "\n", " ")+"\n\n")
		case <-f.cut:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// tell sends events; each has been written when the next is taken.
func (f *fake) tell(r *http.Request, events ...string) {
	for _, e := range events {
		select {
		case f.events <- e:
		case <-r.Context().Done():
			return
		}
	}
}

// paths gives the calls so far.
func (f *fake) paths() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.seen...)
}

func (f *fake) body(name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bodies[name]
}

func answerJSON(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}

// says is a turn that ends with a fixture.
func says(file string, events ...string) func(f *fake, w http.ResponseWriter, r *http.Request) {
	return func(f *fake, w http.ResponseWriter, r *http.Request) {
		f.tell(r, events...)
		fx := fixtures.Get("opencode/" + file)
		answerJSON(w, fx.Status, string(fx.Body))
	}
}

// world is an agent with one server, to be used in a bubble.
type world struct {
	*Agent

	fake *fake
}

func setup(t *testing.T, f *fake) *world {
	t.Helper()
	return setupHandler(t, f, f)
}

// setupHandler lets a handler stand before the server.
func setupHandler(t *testing.T, f *fake, h http.Handler) *world {
	t.Helper()
	network := pipenet.New()
	stop := network.Serve("opencode", h)
	client := upstream.New(upstream.Config{Dial: network.Dial})
	a := New(Config{}, client)
	t.Cleanup(func() {
		a.Close()
		client.Close()
		stop()
	})
	return &world{a, f}
}

func request(streaming bool) upstream.Call {
	return upstream.Call{
		URL: "http://opencode", Key: "secret", Header: http.Header{"Accept": {"text/event-stream"}, "X-Own": {"1"}}, Stream: streaming,
		Body:           []byte(`{"model":"vendor/xi-1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Which lamp?"}]}`),
		HeadersTimeout: 240 * time.Second, RequestTimeout: 300 * time.Second,
	}
}

// readAll reads a response to its end and closes it.
func readAll(t *testing.T, resp *dialect.Response) string {
	t.Helper()
	defer resp.Close()
	text, err := answertest.Body(resp)
	require.NoError(t, err)
	return text
}

// collect makes one completion of an event stream, as the dispatcher does for clients that want no stream.
func collect(t *testing.T, events string) string {
	t.Helper()
	body, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(events)), answertest.Options{Choices: 1})
	require.NoError(t, err)
	require.Nil(t, problem)
	return string(body)
}

func basicAuth(name, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(name+":"+password))
}

// fixtureEvents are the events of the fixture without the first, which the fake always sends.
func fixtureEvents(t *testing.T) []string {
	t.Helper()
	var events []string
	r := openai.NewReader(strings.NewReader(string(fixtures.Get("opencode/events.sse").Body)), 0)
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return events[1:]
		}
		require.NoError(t, err)
		events = append(events, string(e.Data))
	}
}

// listen serves a handler on a real port.
func listen(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}
