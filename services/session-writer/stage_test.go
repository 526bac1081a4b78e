package sessionwriter

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
	"hydrallm/shared/topology"
)

// pipe stands for the rest of the pipeline: it sends requests to the stage and gets what comes out of it.
type pipe struct {
	t   *testing.T
	bus *bus.Bus

	mu   sync.Mutex
	came map[string]chan outcome // by request
}

// outcome is what the stage made of a request: another body for the dispatcher, or an answer for the client.
type outcome struct {
	request *contract.Request // nil for an answer
	body    string
	refused int // status
}

// refusal reads an answer for the client, which comes in one message.
func refusal(msg []byte) (o outcome, err error) {
	for f, err := range contract.Frames(bytes.Clone(msg)) {
		switch {
		case err != nil:
			return o, err
		case f.Kind == contract.FrameHead:
			head, err := contract.ParseHead(f.Payload)
			if err != nil {
				return o, err
			}
			o.refused = head.Status
		case f.Kind == contract.FrameData:
			o.body += string(f.Payload)
		}
	}
	return o, nil
}

func newPipe(t *testing.T, srv bus.InProcess) *pipe {
	t.Helper()
	p := &pipe{t: t, bus: bustest.Connect(t, srv), came: map[string]chan outcome{}}
	next, err := p.bus.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 64}, func(_ context.Context, w *bus.Work) {
		p.give(w.Request.ID, outcome{request: w.Request, body: string(w.Body)})
		w.Done()
	})
	require.NoError(t, err)
	replies, err := p.bus.SubscribeReplies("i1", func(rid string, msg []byte) {
		o, err := refusal(msg)
		if err != nil {
			t.Errorf("reply to request %s: %v", rid, err)
		}
		p.give(rid, o)
	})
	require.NoError(t, err)
	bustest.Own(t, p.bus, "i1", bustest.Owner{})
	t.Cleanup(func() {
		require.NoError(t, next.Stop(context.Background()))
		require.NoError(t, replies.Stop())
	})
	return p
}

func (p *pipe) waiting(rid string) chan outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.came[rid] == nil {
		p.came[rid] = make(chan outcome, 16)
	}
	return p.came[rid]
}

func (p *pipe) give(rid string, o outcome) {
	select {
	case p.waiting(rid) <- o:
	default: // more of the same
	}
}

// ask sends a request through the stage.
func (p *pipe) ask(rid, session, body string, change ...func(*contract.Request)) outcome {
	p.t.Helper()
	o, err := p.try(rid, session, body, change...)
	require.NoError(p.t, err)
	return o
}

// try is ask for any goroutine.
func (p *pipe) try(rid, session, body string, change ...func(*contract.Request)) (outcome, error) {
	r := &contract.Request{
		ID: rid, Ingress: "i1", Slip: contract.Slip{contract.StageSession, contract.StageEnriched}, Operation: contract.Chat, Surface: contract.SurfaceChat, Model: "m",
		Principal: "k:1", SessionID: session, ReceivedAt: time.Now(), StartBy: time.Now().Add(testWait), QueueTimeout: testWait,
		Decision: &contract.Decision{Model: "m", Configured: true},
	}
	for _, fn := range change {
		fn(r)
	}
	if err := p.bus.PublishWork(p.t.Context(), r, []byte(body)); err != nil {
		return outcome{}, err
	}
	select {
	case o := <-p.waiting(rid):
		return o, nil
	case <-time.After(testWait):
		return outcome{}, fmt.Errorf("nothing comes of request %s", rid)
	}
}

// answer makes the fact of an answer, as the dispatcher does before it ends one.
func (p *pipe) answer(o outcome, text string) {
	p.t.Helper()
	require.NotNil(p.t, o.request, "refused: %d %s", o.refused, o.body)
	require.NoError(p.t, p.store(o, text))
}

// store is answer for any goroutine.
func (p *pipe) store(o outcome, text string) error {
	r := o.request
	data, err := json.Marshal(contract.Turn{
		Session: r.SessionID, RequestID: r.ID, Principal: r.Principal, Unsaved: r.NoHistory, Messages: []string{`{"role":"assistant","content":"` + text + `"}`}, At: time.Now(),
	})
	if err != nil {
		return err
	}
	return p.bus.PublishFact(p.t.Context(), subject.Turn(r.SessionID, "answered"), r.ID+".answered", data)
}

// converse has turns in a session and looks whether each sees those before it. began is told that one has begun, if it listens.
func (p *pipe) converse(session string, turns int, began chan<- struct{}) error {
	var want []string
	for n := range turns {
		rid := fmt.Sprintf("%s-%d", session, n)
		select {
		case began <- struct{}{}:
		default:
		}
		o, err := p.try(rid, session, question("ask "+rid))
		if err != nil {
			return err
		}
		if o.request == nil || o.request.NoHistory {
			return fmt.Errorf("request %s: status %d, body %s, request %+v", rid, o.refused, o.body, o.request)
		}
		got, err := saying(o.body)
		if err != nil {
			return err
		}
		want = append(want, "ask "+rid)
		if !slices.Equal(want, got) {
			return fmt.Errorf("request %s sees %q", rid, got)
		}
		if err := p.store(o, "answer "+rid); err != nil {
			return err
		}
		want = append(want, "answer "+rid)
	}
	return nil
}

func question(text string) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + text + `"}]}`
}

// said lists what the messages of a body say.
func said(t *testing.T, body string) (list []string) {
	t.Helper()
	list, err := saying(body)
	require.NoError(t, err)
	return list
}

// saying is said for any goroutine.
func saying(body string) (list []string, err error) {
	var b struct{ Messages []struct{ Content string } }
	err = json.Unmarshal([]byte(body), &b)
	for _, m := range b.Messages {
		list = append(list, m.Content)
	}
	return list, err
}

func newWriter(t *testing.T, srv bus.InProcess, database string) *Service {
	t.Helper()
	s, err := New(Config{ID: "w1", Database: database}, bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	require.NoError(t, s.Start(t.Context()))
	return s
}

// the stage puts the history into the body, changes nothing else of it, and measures it again.
func TestStageAssemblesThePrompt(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	newWriter(t, srv, sqliteAddress(t))
	p := newPipe(t, srv)
	first := p.ask("r1", "s", `{"model":"m", "seed":9223372036854775807,"messages":[{"role":"user","content":"12345678"}]}`)
	require.Equal(t, `{"model":"m", "seed":9223372036854775807,"messages":[{"role":"user","content":"12345678"}]}`, first.body)
	p.answer(first, "abcdefgh")
	second := p.ask("r2", "s", `{"model":"m", "seed":9223372036854775807,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`)
	require.Equal(t, `{"model":"m", "seed":9223372036854775807,"messages":[{"role":"user","content":"12345678"},{"role":"assistant","content":"abcdefgh"},`+
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, second.body)
	p.answer(second, "x")
	third := p.ask("r3", "s", question("12345678"))
	require.Equal(t, int64(2+2+256+1+2), third.request.Traits.Tokens)
	require.Equal(t, third.request.Traits.Tokens, third.request.Decision.Tokens)
	require.True(t, third.request.Traits.Images)
	require.Equal(t, contract.FeatureImages, third.request.Decision.Needs)
	require.False(t, third.request.NoHistory)

	// Another principal's session does not exist, nor does a fork point elsewhere.
	other := func(r *contract.Request) { r.Principal = "k:2" }
	require.Equal(t, http.StatusNotFound, p.ask("r4", "s", question("mine?"), other).refused)
	fork := func(r *contract.Request) { r.ForkFrom = "msg_none" }
	require.Equal(t, http.StatusNotFound, p.ask("r5", "s", question("x"), fork).refused)
	require.Equal(t, http.StatusNotFound, p.ask("r6", "none", question("x"), fork).refused)
}

// the history goes before a prompt of Completions, and is measured with it.
func TestStageBeforeAPrompt(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	newWriter(t, srv, sqliteAddress(t))
	p := newPipe(t, srv)
	completions := func(r *contract.Request) { r.Surface = contract.SurfaceCompletions }
	p.answer(p.ask("r1", "s", `{"model":"m","prompt":"12345678"}`, completions), "abcdefgh")
	second := p.ask("r2", "s", `{"model":"m","prompt":"more"}`, completions)
	require.Equal(t, []string{"12345678", "abcdefgh", "more"}, said(t, second.body))
	require.False(t, second.request.NoHistory)
	require.Equal(t, int64(2+2+1), second.request.Traits.Tokens)

	// what no session can hold is the client's mistake.
	for i, prompt := range []string{`["a","b"]`, `[1,2]`, `[[1],[2]]`} {
		o := p.ask(fmt.Sprintf("bad%d", i), "s", `{"model":"m","prompt":`+prompt+`}`, completions)
		require.Equal(t, http.StatusBadRequest, o.refused, prompt)
		require.Contains(t, o.body, `"param":"prompt"`, prompt)
	}
	o := p.ask("fill", "s", `{"model":"m","prompt":"a","suffix":"b"}`, completions)
	require.Equal(t, http.StatusBadRequest, o.refused)
	require.Contains(t, o.body, "'suffix' as it is given has no place in a session")
}

// compress_context shortens what is loaded, and neither the question nor what is stored.
func TestCompressedContext(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	newWriter(t, srv, sqliteAddress(t))
	p := newPipe(t, srv)
	long := strings.Repeat("there is nothing new in this part of it. ", 30) + "The code of gate 7 is KX-4711. " + strings.Repeat("and so it goes on for a good while. ", 30)
	p.answer(p.ask("r1", "s", question(long)), "short answer")
	compress := func(r *contract.Request) { r.CompressContext = new(true) }
	list := said(t, p.ask("r2", "s", question(long), compress).body)
	require.Len(t, list, 3)
	require.Less(t, len(list[0]), len(long)/2)
	require.Contains(t, list[0], "KX-4711")
	require.Equal(t, []string{"short answer", long}, list[1:])
	require.Equal(t, []string{long, "short answer", "plain"}, said(t, p.ask("r3", "s", question("plain")).body))
	require.Equal(t, []string{long, "short answer", "plain"}, said(t, p.ask("r4", "s", question("plain"), func(r *contract.Request) { r.CompressContext = new(false) }).body))
}

// over two writers on one database, of which one is stopped in the middle of its work again and again, every turn sees the one before it.
func TestEveryTurnSeesTheOneBefore(t *testing.T) {
	t.Parallel()
	const sessions, turns = 4, 60
	srv, database := natstest.Start(t), pgtest.New(t)
	newWriter(t, srv, database)
	p := newPipe(t, srv)
	began, over := make(chan struct{}), make(chan struct{})
	// kill runs a writer until a turn begins, and cuts off what it does then.
	kill := func(id string) (last bool, err error) {
		log := slog.New(slog.DiscardHandler)
		b, err := bus.Connect(t.Context(), bus.Config{InProcess: srv, Name: id, Logger: log})
		if err != nil {
			return true, err
		}
		defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(t.Context()))) }()
		s, err := New(Config{ID: id, Database: database}, b, log, prometheus.NewRegistry())
		if err != nil {
			return true, err
		}
		if err := s.Start(t.Context()); err != nil {
			return true, err
		}
		select {
		case <-began:
		case <-over:
			return true, s.Stop(context.WithoutCancel(t.Context()))
		}
		now, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Stop(now)
		return false, nil
	}
	var killer, talkers sync.WaitGroup
	killer.Go(func() {
		for i, last := 0, false; !last; i++ {
			var err error
			if last, err = kill(fmt.Sprintf("w2-%d", i)); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range sessions {
		talkers.Go(func() {
			if err := p.converse(fmt.Sprintf("s%d", i), turns, began); err != nil {
				t.Error(err)
			}
		})
	}
	talkers.Wait()
	close(over)
	killer.Wait()
	for i := range sessions {
		page, err := query.GetMessages.Ask(t.Context(), p.bus, query.Messages{ID: fmt.Sprintf("s%d", i)})
		require.NoError(t, err)
		require.Len(t, page.Messages, 2*turns)
	}
}

// when the database can't be had, requests go on without their history, and nothing is lost.
func TestDatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	srv, database := natstest.Start(t), pgtest.New(t)
	newWriter(t, srv, database)
	p := newPipe(t, srv)
	p.answer(p.ask("r1", "s", question("one")), "first")

	db, err := sql.Open("postgres", database)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	rename := func(from, to string) {
		_, err := db.ExecContext(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to)
		require.NoError(t, err)
	}
	rename("sessions", "away")
	o := p.ask("r2", "s", question("two"))
	require.True(t, o.request.NoHistory)
	require.Equal(t, question("two"), o.body)
	p.answer(o, "second")
	stranger := p.ask("r3", "s", question("stranger"), func(r *contract.Request) { r.Principal = "k:2" })
	require.True(t, stranger.request.NoHistory)
	p.answer(stranger, "to a stranger")
	p.answer(p.ask("r4", "new", question("of a new session")), "stored later")
	rename("away", "sessions")

	require.Equal(t, []string{"one", "first", "two", "second", "three"}, said(t, p.ask("r5", "s", question("three")).body))
	require.Equal(t, []string{"of a new session", "stored later", "next"}, said(t, p.ask("r6", "new", question("next")).body))
}

// nothing of a session that was deleted comes back, not even what was only a fact.
func TestDeletedSessionsStayDeleted(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	newWriter(t, srv, sqliteAddress(t))
	p := newPipe(t, srv)
	p.answer(p.ask("r1", "s", question("secret")), "told")
	_, err := query.DeleteSession.Ask(t.Context(), p.bus, query.SessionID{ID: "s"})
	require.NoError(t, err)
	_, found, err := p.bus.NextFact(t.Context(), subject.Turn("s", "*"), 0)
	require.NoError(t, err)
	require.False(t, found)
	for _, op := range []func() error{
		func() error { _, err := query.GetMessages.Ask(t.Context(), p.bus, query.Messages{ID: "s"}); return err },
		func() error { _, err := query.GetSession.Ask(t.Context(), p.bus, query.SessionID{ID: "s"}); return err },
		func() error {
			_, err := query.DeleteSession.Ask(t.Context(), p.bus, query.SessionID{ID: "s"})
			return err
		},
		func() error { _, err := query.ForkSession.Ask(t.Context(), p.bus, query.Fork{ID: "s"}); return err },
	} {
		require.ErrorIs(t, op(), errNotFound)
	}
	require.Equal(t, []string{"new"}, said(t, p.ask("r2", "s", question("new")).body))
}

// What is no turn goes to the dead letters and holds nobody up.
func FuzzReadTurn(f *testing.F) {
	f.Add("answered", `{"session_id":"s","request_id":"r","messages":["{}"],"at":"2026-01-01T00:00:00Z"}`)
	f.Add("asked", `{"session_id":"","messages":[1]}`)
	f.Add("x", `[]`)
	f.Fuzz(func(t *testing.T, kind, data string) {
		subj := subject.Turn("s", strings.ReplaceAll(kind, ".", ""))
		if turn, err := readTurn(bus.Fact{Subject: subj, Data: []byte(data)}); err == nil && (turn.Session != "s" || turn.RequestID == "") {
			t.Fatalf("%+v", turn)
		}
	})
}
