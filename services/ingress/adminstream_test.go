package ingress_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
)

// world is what a gateway has to tell.
type world struct {
	mu       sync.Mutex
	status   int
	logs     []query.LogEntry
	requests []query.Request
	down     bool // of the database
	asked    int
}

func (w *world) change(f func(*world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

var errDown = fault.New(fault.Unavailable, "The database can't be had")

// tells has a worker answer what the stream asks for.
func (w *world) tells(g *gateway) {
	dispatcher, writer := query.Handlers{}, query.Handlers{}
	query.GetStatus.Handle(dispatcher, func(context.Context, query.None) (query.Status, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asked++
		return query.Status{Status: query.Online, Slots: []query.Load{{ID: "u", Active: w.status}}}, nil
	})
	query.GetLogs.Handle(writer, func(_ context.Context, q query.Logs) (found []query.LogEntry, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.down {
			return nil, errDown
		}
		for i := len(w.logs) - 1; i >= 0 && w.logs[i].ID > q.After && len(found) < q.Limit; i-- {
			found = append(found, w.logs[i])
		}
		return found, nil
	})
	query.ListRequests.Handle(writer, func(_ context.Context, q query.Requests) (page query.RequestPage, err error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.down {
			return page, errDown
		}
		for i := len(w.requests) - 1; i >= 0 && w.requests[i].Number > q.After; i-- {
			page.Requests = append(page.Requests, w.requests[i])
		}
		return page, nil
	})
	g.answers(query.Dispatcher, dispatcher)
	g.answers(query.SessionWriter, writer)
}

// newsEvent is an event of the stream.
type newsEvent struct{ name, data string }

// reader is a reader of the admin stream.
type reader struct {
	t      *testing.T
	events chan newsEvent // closed at the end
	leave  context.CancelFunc
}

func (g *gateway) read(t *testing.T) *reader {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/v1/admin/stream", nil)
	require.NoError(t, err)
	req.Header.Set("X-Admin-Key", adminKey)
	resp, err := g.client.Do(req) //nolint:bodyclose // closed by the goroutine below
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Contains(t, resp.Header.Get("Content-Type"), "text/event-stream")
	r := &reader{t: t, events: make(chan newsEvent, 256), leave: cancel}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(r.events)
		defer resp.Body.Close() //nolint:errcheck // it was read to its end
		name := ""
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if after, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				name = after
			}
			if after, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				r.events <- newsEvent{name, after}
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return r
}

// next waits for an event that fits; others may come before it.
func (r *reader) next(name string, fits func(data string) bool) string {
	r.t.Helper()
	limit := time.After(await.Limit)
	for {
		select {
		case e, ok := <-r.events:
			require.True(r.t, ok, "the stream ended before %s", name)
			if e.name == name && (fits == nil || fits(e.data)) {
				return e.data
			}
		case <-limit:
			require.Fail(r.t, "no such event", name)
		}
	}
}

func has(path string, value any) func(string) bool {
	return func(data string) bool { return gjson.Get(data, path).String() == fmt.Sprint(value) }
}

// a reader hears how things are, then what is new, once and in order; what can't be read, and when it can again.
func TestAdminStream(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	w := &world{logs: []query.LogEntry{{ID: 1, Message: "old"}}, requests: []query.Request{{Number: 1, ID: "old"}}}
	w.tells(g)
	r := g.read(t)
	require.Equal(t, "1.2.3", gjson.Get(r.next("hello", nil), "version").Str)
	r.next("status", has("slots.0.active", 0))
	w.change(func(w *world) { w.status = 5 })
	r.next("status", has("slots.0.active", 5))
	const evil = "<script>alert(1)</script>\r\n\r\nevent: status"
	w.change(func(w *world) {
		w.logs = append(w.logs, query.LogEntry{ID: 2, Message: evil, Metadata: `{"a": 1}`}, query.LogEntry{ID: 3, Message: "new"})
		w.requests = append(w.requests, query.Request{Number: 7, ID: "new"})
	})
	data := r.next("logs", nil)
	require.Equal(t, `["new",`+string(must(json.Marshal(evil)))+`]`, gjson.Get(data, "entries.#.message").Raw, "what was there before is no news")
	second := g.read(t)
	second.next("status", has("slots.0.active", 5))
	w.change(func(w *world) { w.down = true })
	for _, one := range []*reader{r, second} {
		one.next("fault", has("part", "logs"))
	}
	w.change(func(w *world) {
		w.down = false
		w.requests = append(w.requests, query.Request{Number: 9, ID: "newest"})
	})
	for _, one := range []*reader{r, second} {
		one.next("requests", has("requests.0.request_id", "newest"))
	}
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// the key opens it, and only in its header; it changes nothing; nobody is asked while nobody reads, and there is a limit of readers.
func TestAdminStreamIsGuarded(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	w := &world{}
	w.tells(g)
	for _, path := range []string{"/v1/admin/stream", "/v1/admin/stream?X-Admin-Key=" + adminKey, "/v1/admin/stream?key=" + adminKey} {
		requireError(t, g.do(http.MethodGet, path, nil), http.StatusUnauthorized)
	}
	requireError(t, g.do(http.MethodGet, "/v1/admin/stream", nil, "X-Admin-Key", "wrong"), http.StatusUnauthorized)
	requireError(t, g.do(http.MethodPost, "/v1/admin/stream", nil, "X-Admin-Key", adminKey), http.StatusMethodNotAllowed)
	a := g.do(http.MethodHead, "/v1/admin/stream", nil, "X-Admin-Key", adminKey)
	require.Equal(t, http.StatusOK, a.StatusCode)
	w.change(func(w *world) { require.Zero(t, w.asked) })
	const most = 32
	readers := make([]*reader, most)
	for i := range readers {
		readers[i] = g.read(t)
	}
	for _, r := range readers {
		r.next("status", nil)
	}
	_, code := requireError(t, g.do(http.MethodGet, "/v1/admin/stream", nil, "X-Admin-Key", adminKey), http.StatusTooManyRequests)
	require.Equal(t, "too_many_streams", code)
	readers[0].leave()
	next := 0
	await.True(t, func() bool { // that the reader has gone shows when something is written to it
		next++
		w.change(func(w *world) { w.status = next })
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/v1/admin/stream", nil)
		require.NoError(t, err)
		req.Header.Set("X-Admin-Key", adminKey)
		resp, err := g.client.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode == http.StatusOK
	})
}

// readers do not keep a gateway that stops, and come to an end by themselves.
func TestAdminStreamEndsWithTheGateway(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	(&world{}).tells(g)
	r := g.read(t)
	r.next("status", nil)
	ctx, cancel := context.WithTimeout(t.Context(), await.Limit)
	defer cancel()
	require.NoError(t, g.ingress.Stop(ctx), "nothing is cut off")
	for range r.events {
	}
}

// what is looked for travels from the address to the session writer; what can't be looked for is a 400.
func TestListsOfTheInterface(t *testing.T) {
	t.Parallel()
	g := setup(t, withAdmin)
	questions := serve(t, g, "session-writer", map[string]string{"requests": `{"requests":[]}`, "timeline": `{}`, "logs": `[]`})
	ask := func(path string) answer { return g.do(http.MethodGet, "/v1/admin/"+path, nil, "X-Admin-Key", adminKey) }
	require.Equal(t, http.StatusOK, ask("requests?limit=5&before=9&after=2&request_id=a&session_id=s&model=m%2Fx&provider=p&client=k:1&status=failover&reason=r").StatusCode)
	require.JSONEq(t, `{"limit":5,"before":9,"after":2,"request_id":"a","session_id":"s","model":"m/x","provider":"p","client":"k:1","status":"failover","reason":"r"}`, <-questions)
	require.Equal(t, http.StatusOK, ask("logs?text=a%25b&level=INFO&category=ROUTING&request_id=r").StatusCode)
	require.JSONEq(t, `{"limit":50,"text":"a%b","level":"INFO","category":"ROUTING","request_id":"r"}`, <-questions)
	require.Equal(t, http.StatusOK, ask("timeline?range=900&step=15&model=m&client=c").StatusCode)
	q := <-questions
	require.Equal(t, int64(15*time.Second), gjson.Get(q, "step").Int())
	require.Equal(t, 15*time.Minute, gjson.Get(q, "to").Time().Sub(gjson.Get(q, "from").Time()))
	for _, bad := range []string{
		"requests?status=odd", "requests?before=x", "requests?after=-1", "requests?limit=x", "requests?model=" + strings.Repeat("m", 300), "logs?before=1.5", "timeline?range=x", "timeline?range=-5",
		"timeline?step=0", "timeline?range=99999999999", "logs?text=" + strings.Repeat("x", 300), "logs?text=a%00", "requests?model=%ff", "timeline?client=%c3",
	} {
		requireError(t, ask(bad), http.StatusBadRequest)
	}
}
