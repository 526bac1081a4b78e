package ingress_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/topology"
)

const (
	pathResponses  = "/v1/responses"
	backgroundBody = `{"model":"m","input":"hi","background":true,"metadata":{"a":"b"}}`
	backgroundLive = `{"model":"m","input":"hi","background":true,"stream":true}`
)

// oneModel is an ingress that decides about the model "m".
func oneModel(c *ingress.Config) { c.Models = []ingress.Model{{ID: "m"}} }

// event is one of a stream of Responses; more are its members.
func event(n int, kind, more string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, n, more)
}

// answerEvents are those of an answer with some pieces of text, which begin with the one that the ingress has told already.
func answerEvents(pieces int) []string {
	object := `,"response":{"id":"x","status":"in_progress","output":[]}`
	events := []string{event(0, "response.created", object), event(1, "response.in_progress", object)}
	for i := range pieces {
		events = append(events, event(2+i, "response.output_text.delta", fmt.Sprintf(`,"output_index":0,"content_index":0,"delta":"%d "`, i)))
	}
	return append(events, event(2+pieces, "response.completed", `,"response":{"id":"x","status":"completed","output":[{"id":"y"}]}`))
}

// asked asks for a response in the background and gives it.
func (g *gateway) asked(header ...string) gjson.Result {
	g.t.Helper()
	a := g.do(http.MethodPost, pathResponses, strings.NewReader(backgroundBody), header...)
	require.Equal(g.t, http.StatusOK, a.StatusCode, a.body)
	return gjson.Parse(a.body)
}

// polled gives a response as it is now.
func (g *gateway) polled(id string) gjson.Result {
	g.t.Helper()
	a := g.do(http.MethodGet, pathResponses+"/"+id, nil)
	require.Equal(g.t, http.StatusOK, a.StatusCode, a.body)
	return gjson.Parse(a.body)
}

// polledUntil polls until the response has a status.
func (g *gateway) polledUntil(id, status string) (r gjson.Result) {
	g.t.Helper()
	await.True(g.t, func() bool {
		r = g.polled(id)
		return r.Get("status").Str == status
	}, status)
	return r
}

// events reads a stream of a path: as many events as wanted, or all.
func (g *gateway) events(ctx context.Context, method, path, body string, wanted int, begun func()) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*testWait) // a hundred of them read at the same time
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, g.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	resp, err := g.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // the stream may be cut
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil, fmt.Errorf("status %d, %s", resp.StatusCode, resp.Header.Get("Content-Type"))
	}
	if begun != nil {
		begun()
	}
	var all []string
	in, block := bufio.NewReader(resp.Body), ""
	for len(all) < wanted {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if block += line; line == "\n" {
			if !strings.HasPrefix(block, ":") {
				all = append(all, block)
			}
			block = ""
		}
	}
	return all, nil
}

const allEvents = 1 << 20

// a response in the background is there at once, and is polled at any ingress while it waits, is worked on, and has ended.
func TestBackgroundResponseIsPolled(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	g, other := setupOn(t, server, oneModel), setupOn(t, server, oneModel)
	r := g.asked()
	id := r.Get("id").Str
	require.Regexp(t, "^resp_", id)
	require.Equal(t, "queued", r.Get("status").Str)
	require.True(t, r.Get("background").Bool())
	require.Equal(t, "b", r.Get("metadata.a").Str)
	require.JSONEq(t, r.Raw, other.polled(id).Raw)
	require.Equal(t, http.StatusOK, other.do(http.MethodHead, pathResponses+"/"+id+"?stream=true", nil).StatusCode, "it ends without a body")

	proceed, got := make(chan struct{}), make(chan *bus.Work, 1)
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		got <- r.work
		<-proceed
		_ = r.head("text/event-stream")
		_ = r.send(ctx, strings.Join(answerEvents(3), ""))
		_ = r.end()
	})
	w := await.Value(t, got)
	require.True(t, gjson.GetBytes(w.Body, "stream").Bool(), "its events are recorded, whatever the client wants now")
	require.True(t, w.Request.Stream)
	require.WithinRange(t, w.Request.StartBy, time.Now().Add(59*time.Minute), time.Now().Add(time.Hour))
	running := other.polled(id)
	require.Equal(t, "in_progress", running.Get("status").Str)
	require.Equal(t, "b", running.Get("metadata.a").Str)
	close(proceed)
	require.Equal(t, "y", other.polledUntil(id, "completed").Get("output.0.id").Str)
}

// the stream of a response goes on where its client broke off, at another ingress, while the answer comes and afterwards: for each of 200 places
// all of it makes the same events.
func TestBackgroundStreamIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	const pieces = 201
	server := natstest.Start(t)
	g, other := setupOn(t, server, oneModel), setupOn(t, server, oneModel)
	sent, want, proceed := answerEvents(pieces), answerEvents(pieces), make(chan struct{})
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		for i, e := range sent {
			if i == pieces/2 {
				<-proceed
			}
			if i%10 == 0 { // events come in pieces
				_ = r.send(ctx, e[:len(e)/2])
				e = e[len(e)/2:]
			}
			_ = r.send(ctx, e)
		}
		_ = r.end()
	})
	first, err := g.events(t.Context(), http.MethodPost, pathResponses, backgroundLive, 1, nil)
	require.NoError(t, err)
	_, data, _ := strings.Cut(first[0], "data: ")
	created := gjson.Parse(data)
	require.Equal(t, "queued", created.Get("response.status").Str, "it can be told at once")
	id := created.Get("response.id").Str
	want[0] = first[0]

	// resume reads as many events at one ingress and the rest at the other one.
	resume := func(from, to *gateway, cut int, begun func()) error {
		seen, err := from.events(t.Context(), http.MethodGet, pathResponses+"/"+id+"?stream=true", "", cut, nil)
		if err != nil {
			return err
		}
		rest, err := to.events(t.Context(), http.MethodGet, fmt.Sprintf("%s/%s?stream=true&starting_after=%d", pathResponses, id, cut-1), "", allEvents, begun)
		if err != nil {
			return err
		}
		if got := strings.Join(append(seen, rest...), ""); got != strings.Join(want, "") {
			return fmt.Errorf("cut behind event %d: %d and %d events: %s", cut, len(seen), len(rest), got)
		}
		return nil
	}
	var live, begun sync.WaitGroup
	for cut := 1; cut < pieces/2; cut++ {
		begun.Add(1)
		live.Go(func() {
			tell := sync.OnceFunc(begun.Done)
			defer tell()
			if err := resume(g, other, cut, tell); err != nil {
				t.Error(err)
			}
		})
	}
	begun.Wait()
	close(proceed)
	live.Wait()
	for cut := pieces / 2; cut <= 200; cut++ {
		require.NoError(t, resume(other, g, cut, nil))
	}
}

// what can't be taken up again.
func TestBackgroundStreamWithABadCursor(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	id := g.asked().Get("id").Str
	path := pathResponses + "/" + id + "?stream=true&starting_after="
	for _, cursor := range []string{"1", "x", "-1", "1.5", "99999999999999999999"} {
		a := g.do(http.MethodGet, path+cursor, nil)
		require.Equal(t, http.StatusBadRequest, a.StatusCode, cursor)
		require.Equal(t, "starting_after", gjson.Get(a.body, "error.param").Str)
	}
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		_ = r.send(ctx, strings.Join(answerEvents(3), ""))
		_ = r.end()
	})
	g.polledUntil(id, "completed")
	require.Equal(t, http.StatusBadRequest, g.do(http.MethodGet, path+"6", nil).StatusCode)
	last := g.do(http.MethodGet, path+"5", nil)
	require.Equal(t, http.StatusOK, last.StatusCode)
	require.Empty(t, last.body, "the client has seen all of it")
}

// a response in the background is cancelled at any ingress, as often as a client likes; one that has ended stays as it is.
func TestBackgroundResponseIsCancelled(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t)
	g, other := setupOn(t, server, oneModel), setupOn(t, server, oneModel)
	cancel := func(g *gateway, id string) gjson.Result {
		a := g.do(http.MethodPost, pathResponses+"/"+id+"/cancel", nil)
		require.Equal(t, http.StatusOK, a.StatusCode, a.body)
		return gjson.Parse(a.body)
	}
	waiting := g.asked().Get("id").Str
	require.Equal(t, "cancelled", cancel(other, waiting).Get("status").Str)

	left := make(chan error, 1)
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		_ = r.send(ctx, strings.Join(answerEvents(3)[:4], ""))
		if strings.Contains(string(r.work.Body), "whole") {
			_ = r.send(ctx, answerEvents(3)[5])
			_ = r.end()
			return
		}
		select {
		case <-ctx.Done():
			left <- context.Cause(ctx)
		case <-time.After(testWait):
			left <- nil
		}
	})
	running := g.asked().Get("id").Str
	seen, err := g.events(t.Context(), http.MethodGet, pathResponses+"/"+running+"?stream=true", "", 4, nil)
	require.NoError(t, err)
	require.Len(t, seen, 4)
	for _, at := range []*gateway{other, g, other} {
		require.Equal(t, "cancelled", cancel(at, running).Get("status").Str)
	}
	require.ErrorIs(t, await.Value(t, left), contract.ErrClientGone)
	seen, err = g.events(t.Context(), http.MethodGet, pathResponses+"/"+running+"?stream=true", "", allEvents, nil)
	require.NoError(t, err)
	require.Contains(t, seen[len(seen)-1], "response.cancelled")

	a := g.do(http.MethodPost, pathResponses, strings.NewReader(strings.Replace(backgroundBody, "hi", "whole", 1)))
	whole := gjson.Get(a.body, "id").Str
	g.polledUntil(whole, "completed")
	require.Equal(t, "completed", cancel(other, whole).Get("status").Str)
}

// what is not there, or somebody else's, is a 404; what can't be is a 400.
func TestBackgroundResponsesBelongToTheirClients(t *testing.T) {
	t.Parallel()
	const key, otherKey, admin = "key-one", "key-two", "the-admin-key"
	g := setup(t, func(c *ingress.Config) {
		oneModel(c)
		c.ClientKeys, c.AdminKey = []string{key, otherKey}, admin
	})
	g.storedResponses(nil)
	bearer := func(key string) []string { return []string{"Authorization", "Bearer " + key} }
	id := g.asked(bearer(key)...).Get("id").Str
	for path, method := range map[string]string{"": http.MethodGet, "?stream=true": http.MethodGet, "/cancel": http.MethodPost} {
		for who, want := range map[string]int{otherKey: http.StatusNotFound, key: http.StatusOK, admin: http.StatusOK} {
			if want == http.StatusOK && path == "?stream=true" {
				continue // it has no end
			}
			if want == http.StatusOK && path == "/cancel" && who == key {
				continue
			}
			a := g.do(method, pathResponses+"/"+id+path, nil, bearer(who)...)
			require.Equal(t, want, a.StatusCode, "%s %s: %s", path, who, a.body)
		}
	}
	for _, unknown := range []string{"resp_x", "x", "resp_", "resp_*", "resp_%3E", "resp_a.b"} {
		require.Equal(t, http.StatusNotFound, g.do(http.MethodGet, pathResponses+"/"+unknown, nil, bearer(key)...).StatusCode, unknown)
		require.Equal(t, http.StatusNotFound, g.do(http.MethodPost, pathResponses+"/"+unknown+"/cancel", nil, bearer(key)...).StatusCode, unknown)
	}
	a := g.do(http.MethodPost, pathResponses, strings.NewReader(`{"model":"m","input":"hi","background":true,"store":false}`), bearer(key)...)
	require.Equal(t, http.StatusBadRequest, a.StatusCode)
}

// storedResponses has the session writer know some responses by their ids.
func (g *gateway) storedResponses(known map[string]string) {
	g.t.Helper()
	missing := fault.New(fault.NotFound, "There is no such response")
	h := query.Handlers{}
	query.GetResponse.Handle(h, func(_ context.Context, q query.ResponseID) (query.Document, error) {
		if text, ok := known[q.ID]; ok {
			return query.Document(text), nil
		}
		return "", missing
	})
	query.DeleteResponse.Handle(h, func(_ context.Context, q query.ResponseID) (d query.ResponseDeleted, err error) {
		if _, ok := known[q.ID]; !ok {
			err = missing
		}
		return query.ResponseDeleted{ID: q.ID, Object: "response", Deleted: true}, err
	})
	g.answers(query.SessionWriter, h)
}

// responses that are stored, and not or no longer recorded, are shown, but neither streamed nor cancelled; one that is recorded is deleted with
// what is stored of it.
func TestStoredAndRecordedResponses(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	g.storedResponses(map[string]string{"resp_plain": `{"id":"resp_plain","background":false}`, "resp_old": `{"id":"resp_old","background":true,"status":"completed"}`})
	for id, want := range map[string]struct{ show, stream, cancel int }{
		"resp_plain": {http.StatusOK, http.StatusBadRequest, http.StatusBadRequest}, "resp_old": {http.StatusOK, http.StatusBadRequest, http.StatusOK},
		"resp_none": {http.StatusNotFound, http.StatusNotFound, http.StatusNotFound},
	} {
		require.Equal(t, want.show, g.do(http.MethodGet, pathResponses+"/"+id, nil).StatusCode, id)
		require.Equal(t, want.stream, g.do(http.MethodGet, pathResponses+"/"+id+"?stream=true", nil).StatusCode, id)
		require.Equal(t, want.cancel, g.do(http.MethodPost, pathResponses+"/"+id+"/cancel", nil).StatusCode, id)
	}
	id := g.asked().Get("id").Str
	a := g.do(http.MethodDelete, pathResponses+"/"+id, nil)
	require.Equal(t, http.StatusOK, a.StatusCode)
	require.JSONEq(t, `{"id":"`+id+`","object":"response","deleted":true}`, a.body)
	require.Equal(t, http.StatusNotFound, g.do(http.MethodGet, pathResponses+"/"+id, nil).StatusCode)
	require.Equal(t, http.StatusNotFound, g.do(http.MethodDelete, pathResponses+"/"+id, nil).StatusCode)
}

// an error before anything has come is how the response failed.
func TestBackgroundResponseThatIsRefused(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		_ = r.Head(contract.Head{Status: http.StatusServiceUnavailable, Header: [][2]string{{"Content-Type", "application/json"}}})
		_ = r.Data(ctx, []byte(`{"error":{"message":"all upstreams busy"}}`))
		_ = r.end()
	})
	r := g.polledUntil(g.asked().Get("id").Str, "failed")
	require.Equal(t, "all upstreams busy", r.Get("error.message").Str)
	require.Equal(t, "server_error", r.Get("error.code").Str)
	seen, err := g.events(t.Context(), http.MethodPost, pathResponses, backgroundLive, allEvents, nil)
	require.NoError(t, err)
	require.Len(t, seen, 2)
	require.Contains(t, seen[1], "response.failed")
}

// a client of HTTP/1.0 gets the stream, too.
func TestBackgroundStreamOverHTTP10(t *testing.T) {
	t.Parallel()
	g := setup(t, oneModel)
	g.answer(topology.Dispatcher, func(ctx context.Context, r *reply) {
		_ = r.head("text/event-stream")
		_ = r.send(ctx, strings.Join(answerEvents(1), ""))
		_ = r.end()
	})
	id := g.asked().Get("id").Str
	conn := dial(t, g.addr)
	_, err := fmt.Fprintf(conn, "GET %s/%s?stream=true HTTP/1.0\r\nHost: x\r\n\r\n", pathResponses, id)
	require.NoError(t, err)
	text, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.Contains(t, string(text), "200 OK")
	require.Equal(t, 4, strings.Count(string(text), "event: "))
}
