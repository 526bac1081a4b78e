package opencode

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
)

// settling is how long one of two messengers may lag behind the other: the answer to the message after the event that says that the turn is
// over, or that event, with all that was said before, after the answer; or the event that says why the turn failed after an answer that
// only says that it did.
const settling = 2 * time.Second

// turn is the question and what comes of it. Two goroutines bring what the server says until cancel is called; everything else happens in
// the steps, which have one caller.
type turn struct {
	server  server
	session string

	cancel context.CancelFunc
	ended  sync.Once
	tasks  sync.WaitGroup
	events chan event  // nil when there are no more
	asked  chan result // has one

	transcript
	settled <-chan time.Time // nil unless one messenger is waited for
	idle    bool             // the events are complete
	final   *final           // the answer to the message
	opaque  *failure         // that of the message, if it says little

	over    bool
	failure *failure // why it is over, if it failed

	streaming bool
	begun     bool         // something was passed on
	out       answer.Queue // that was not read yet
}

// result is what came of the message.
type result struct {
	serverAnswer
	err error
}

// final is the last message of the turn.
type final struct {
	info  info
	parts []part
}

func newTurn(s server, session string, m model, streaming bool) *turn {
	return &turn{
		server: s, session: session, streaming: streaming,
		events: make(chan event), asked: make(chan result, 1), transcript: newTranscript(session, m),
	}
}

// begin listens to the events and, as soon as they come, asks. After an error as well the turn must be stopped.
func (t *turn) begin(ctx context.Context, question []byte) error {
	ctx, t.cancel = context.WithCancel(ctx)
	events, err := t.server.events(ctx)
	if err != nil {
		return err
	}
	if events.Status/100 != 2 {
		defer events.Close()
		text, _ := io.ReadAll(io.LimitReader(events.Body, maxEvent)) // what came of it says enough
		f := serverAnswer{status: events.Status, body: text}.failure()
		t.fail(f)
		return nil
	}
	t.tasks.Go(func() { t.listen(ctx, events) })
	select {
	case e, ok := <-t.events:
		if !ok {
			t.events = nil // the answer will do
		}
		t.take(e)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	t.tasks.Go(func() {
		a, err := t.server.post(ctx, "/session/"+url.PathEscape(t.session)+"/message", question)
		t.asked <- result{a, err}
	})
	return nil
}

// maxEvent bounds one event.
const maxEvent = 32 << 20

// listen passes the events of the session on, and refuses what OpenCode asks.
func (t *turn) listen(ctx context.Context, resp *upstream.Response) {
	defer close(t.events)
	defer resp.Close()
	events := openai.NewReader(resp.Body, maxEvent)
	for {
		next, err := events.Next()
		if err != nil || next.Cut {
			return
		}
		e := readEvent(next.Data)
		switch {
		case e.kind == other || e.kind != connected && e.session != t.session:
			continue
		case e.kind == asking:
			t.server.refuse(ctx, t.session, e.refusal)
			continue
		}
		select {
		case t.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

// step waits for the next thing to happen. The error is the end of ctx, or that of the connection.
func (t *turn) step(ctx context.Context) error {
	select {
	case e, ok := <-t.events:
		if ok {
			t.take(e)
			break
		}
		if t.events = nil; t.final != nil {
			t.complete()
		}
	case r := <-t.asked:
		return t.conclude(r)
	case <-t.settled:
		t.settle()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// take makes what it can of an event.
func (t *turn) take(e event) {
	switch e.kind {
	case ofMessage:
		t.note(e.message)
		if e.message.own && e.message.hasError {
			t.failWith(readFailure(e.message.error))
		}
	case ofPart:
		t.emit(t.grow(e.part))
	case ofDelta:
		t.emit(t.extend(e.part.id, e.delta))
	case nowIdle:
		if t.idle = true; t.final != nil {
			t.complete()
		} else {
			t.await()
		}
	case repeating, failed:
		t.failWith(e.failure)
	case other, connected, asking:
	}
	if t.room < 0 {
		t.fail(newFailure(http.StatusBadGateway, "UnknownError", errTooLong.Error()))
	}
}

// await gives the other messenger some time.
func (t *turn) await() {
	if t.settled == nil {
		t.settled = time.After(settling)
	}
}

// settle ends a turn of which no more comes.
func (t *turn) settle() {
	if t.opaque != nil {
		t.fail(*t.opaque)
		return
	}
	t.complete()
}

// conclude takes what came of the message. It ends the turn as soon as the events are complete as well.
func (t *turn) conclude(r result) error {
	switch {
	case r.err != nil:
		return r.err
	case !r.ok():
		f := r.failure()
		if f.status/100 == 5 && t.events != nil {
			t.opaque = &f // servers say "unexpected error" here, and what it was in an event
			t.await()
			return nil
		}
		t.fail(f)
		return nil
	}
	v := r.json()
	if !v.Get("info").IsObject() {
		t.fail(newFailure(http.StatusBadGateway, "UnknownError", "The answer to the message is none"))
		return nil
	}
	last := &final{info: readInfo(v.Get("info"))}
	for _, p := range v.Get("parts").Array() {
		last.parts = append(last.parts, readPart(p))
	}
	switch {
	case last.info.hasError:
		t.failWith(readFailure(last.info.error))
	case last.info.finish == "error":
		t.fail(newFailure(http.StatusBadGateway, "UnknownError", "The turn failed"))
	}
	if t.over {
		return nil
	}
	if t.final = last; t.idle || t.events == nil {
		t.complete()
	} else {
		t.await()
	}
	return nil
}

// failWith ends the turn for a reason that OpenCode gives. That the model had to stop early is no failure.
func (t *turn) failWith(f failure) {
	if f.name == "MessageOutputLengthError" {
		t.cutShort = true
		t.await()
		return
	}
	t.fail(f)
}

func (t *turn) fail(f failure) {
	if t.over {
		return
	}
	t.over, t.failure = true, &f
	if t.begun {
		f.event(&t.out)
	}
}

// complete ends the turn well, with what the events did not bring.
func (t *turn) complete() {
	if t.final != nil {
		t.note(t.final.info)
		for _, p := range t.final.parts {
			t.emit(t.grow(p))
		}
	}
	t.over = true
	if t.streaming {
		t.start()
		a := t.answer()
		a.End(&t.out, a.Finish, a.Usage)
	}
}

// emit passes a new piece of the answer on.
func (t *turn) emit(kind, text string) {
	if text == "" || t.over || !t.streaming {
		return
	}
	t.start()
	if kind == reasoning {
		t.head().AddReasoning(&t.out, text)
	} else {
		t.head().AddText(&t.out, text)
	}
}

func (t *turn) start() {
	if !t.begun {
		t.begun = true
		t.head().Start(&t.out)
	}
}
