package httpapi

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/valyala/fasthttp"
	"go.opentelemetry.io/otel/trace"

	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
	"hydrallm/shared/surface/responses"
)

// task is a request whose answer no ingress owns.
type task struct {
	req      *contract.Request
	body     []byte // for the pipeline
	queued   []byte // the response that its client gets at once; nil for a request that is not in the background
	streamed bool   // the client wants the stream of that
}

// task makes one of a request. The body is released if it is not the task's.
func (a *API) task(req *contract.Request, body []byte) (t *task, err error) {
	t = &task{req: req, body: body, streamed: req.Stream}
	req.Ingress, req.QueueTimeout, req.StartBy = "", 0, req.ReceivedAt.Add(a.Lifetime)
	if !req.Background {
		req.Background = true
		return t, nil
	}
	defer upload.Release(body)
	req.Stream = true
	if t.queued, err = responses.Queued(req, body); err != nil {
		return nil, fmt.Errorf("describing a queued response: %w", err)
	}
	t.body = rawjson.AppendSet(make([]byte, 0, len(body)+len(`,"stream":true`)), body, "stream", []byte("true"))
	return t, nil
}

// background hands a request to the pipeline whose answer no ingress owns. The client gets the response as it is now, or its stream, which it may
// leave and take up again. The body is released.
func (a *API) background(ctx context.Context, x *exchange, req *contract.Request, body []byte, served *serving) (streaming bool, err error) {
	t, err := a.task(req, body)
	if err != nil {
		return false, err
	}
	within, cancel := context.WithTimeout(ctx, a.QueueTimeout)
	defer cancel()
	if err := a.Bus.Record(within, req, t.queued); err != nil {
		return false, fullFault(err)
	}
	if err := a.enqueue(within, t); err != nil {
		return false, err
	}
	return a.showQueued(x, t.req.ID, t.queued, t.streamed, served), nil
}

// enqueue publishes a task that is recorded, and forgets that otherwise. It waits while the server is away, as for other requests.
func (a *API) enqueue(ctx context.Context, t *task) error {
	if err := a.Bus.PublishWork(ctx, t.req, t.body); err != nil {
		a.forget(ctx, t.req.ID)
		return fullFault(err)
	}
	if t.req.Decision != nil {
		a.Decisions.Note(t.req)
	}
	return nil
}

// forget removes the recording of a request that was not published: nobody knows its id.
func (a *API) forget(ctx context.Context, rid string) {
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.QueueTimeout)
	defer cancel()
	if err := a.Bus.ForgetRecorded(late, rid); err != nil {
		a.Log.Warn("removing the recording of a request that was not published", slog.String("rid", rid), slog.Any("error", err))
	}
}

// showQueued answers with a response that has been queued, or its stream from the first event on.
func (a *API) showQueued(x *exchange, rid string, queued []byte, streamed bool, served *serving) (streaming bool) {
	if !streamed {
		x.json(fasthttp.StatusOK, queued)
		return false
	}
	a.replay(x, rid, queued, -1, served)
	return true
}

// recording finds the recorded answer that the id in the path names, if the caller may see it. The error is bus.ErrNoRecording for others.
func (a *API) recording(x *exchange) (*bus.Recording, error) {
	rid, ok := contract.RequestOf(x.id)
	if !ok {
		return nil, bus.ErrNoRecording
	}
	ctx, cancel := context.WithTimeout(a.Queries(), a.QueueTimeout)
	defer cancel()
	rec, err := a.Bus.Recorded(ctx, rid)
	if err != nil {
		return nil, recordingFault(err)
	}
	if len(rec.Note) == 0 || rec.Request.Principal != x.principal && x.principal != contract.PrincipalAdmin {
		return nil, bus.ErrNoRecording
	}
	return rec, nil
}

func recordingFault(err error) error {
	if errors.Is(err, bus.ErrNoRecording) {
		return err
	}
	return &fault.Fault{Kind: fault.Unavailable, Message: "The response can't be read at the moment", RetryAfter: retryAfter, Cause: err}
}

// showRecorded shows a response in the background as it is now, or streams it.
func (a *API) showRecorded(x *exchange, rec *bus.Recording) error {
	if x.wantsStream() {
		return a.streamRecorded(x, rec)
	}
	response, err := a.recordedResponse(rec)
	if err != nil {
		return err
	}
	x.json(fasthttp.StatusOK, nil)
	a.whole(x, [][]byte{response}, len(response))
	return nil
}

// wantsStream says whether a client asks for the stream of a response: in the query, or, as OpenAI's SDK for Go does, in the body of its GET. Without a
// stream there is no place to begin at.
func (x *exchange) wantsStream() bool {
	args := x.QueryArgs()
	switch {
	case args.Has("stream"):
		streamed, _ := strconv.ParseBool(string(args.Peek("stream")))
		return streamed
	case args.Has("starting_after"):
		return true
	case x.Request.Header.ContentLength() <= 0:
		return false
	}
	body, err := upload.Read(x.RequestCtx, smallBody)
	if err != nil {
		return false // what follows says what is wrong with the request
	}
	defer upload.Release(body)
	return rawjson.Valid(body) && body[0] == '{' && string(rawjson.Get(body, "stream")) == "true"
}

// recordedResponse gives a response as it is now.
func (a *API) recordedResponse(rec *bus.Recording) ([]byte, error) {
	switch rec.State {
	case bus.RecordingQueued:
		return rec.Note, nil
	case bus.RecordingRunning, bus.RecordingAnswering:
		return responses.InProgress(rec.Note), nil
	case bus.RecordingEnded:
	}
	player, err := a.play(rec)
	if err != nil {
		return nil, err
	}
	return player.Response(), nil
}

// play reads what is recorded now.
func (a *API) play(rec *bus.Recording) (*responses.Player, error) {
	ctx, cancel := context.WithTimeout(a.Queries(), a.QueueTimeout)
	defer cancel()
	player := responses.NewPlayer(rec.Note, nil)
	if err := a.Bus.Play(ctx, rec, player.Take); err != nil {
		return nil, recordingFault(err)
	}
	return player, nil
}

// streamRecorded takes the stream of a response up behind the event that the client has seen last.
func (a *API) streamRecorded(x *exchange, rec *bus.Recording) error {
	after := -1
	if text := x.QueryArgs().Peek("starting_after"); len(text) > 0 {
		n, err := strconv.Atoi(string(text))
		if err != nil || n < 0 {
			return badCursor("'starting_after' must be the sequence_number of an event.")
		}
		player, err := a.play(rec)
		if err != nil {
			return err
		}
		if n >= player.Next() {
			return badCursor("'starting_after' is behind the last event, which has the sequence_number " + strconv.Itoa(player.Next()-1) + ".")
		}
		after = n
	}
	_, span := a.Tracer.Start(context.Background(), http.MethodGet+" "+pathResponses+"/{id}", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.Time()))
	a.replay(x, rec.Request.ID, rec.Note, after, &serving{api: a, span: span, unseen: true})
	return nil
}

func badCursor(message string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: "starting_after", Code: openai.CodeInvalidValue, Message: message}
}

// cancelResponse ends a response in the background, and gives it as it is then. One that has ended stays as it is.
func (a *API) cancelResponse(x *exchange, _ *operation) error {
	x.leaveBody()
	rec, err := a.recording(x)
	if errors.Is(err, bus.ErrNoRecording) {
		return a.cancelStored(x)
	}
	if err != nil {
		return err
	}
	if rec.State != bus.RecordingEnded {
		if rec, err = a.cancel(rec.Request.ID); err != nil {
			return recordingFault(err)
		}
	}
	response, err := a.recordedResponse(rec)
	if err != nil {
		return err
	}
	x.json(fasthttp.StatusOK, response)
	return nil
}

func (a *API) cancel(rid string) (*bus.Recording, error) {
	ctx, cancel := context.WithTimeout(a.Queries(), a.QueueTimeout)
	defer cancel()
	if err := a.Bus.CancelRecorded(ctx, rid); err != nil {
		return nil, err
	}
	return a.Bus.Recorded(ctx, rid)
}

// cancelStored answers for a response that is not recorded any more, or never was.
func (a *API) cancelStored(x *exchange) error {
	id, f := x.responseID()
	if f != nil {
		return f
	}
	stored, err := query.GetResponse.AskRaw(a.Queries(), a.Bus, id)
	if err != nil {
		return err
	}
	if string(rawjson.Get(stored, "background")) != "true" {
		return &fault.Fault{Kind: fault.Invalid, Code: openai.CodeInvalidValue, Message: "Only a response in the background can be cancelled."}
	}
	x.json(fasthttp.StatusOK, stored)
	return nil
}

// deleteRecorded removes a response in the background, and what is stored of it. It is cancelled if it has not ended.
func (a *API) deleteRecorded(x *exchange, rec *bus.Recording, id query.ResponseID) error {
	ctx, cancel := context.WithTimeout(a.Queries(), a.QueueTimeout)
	defer cancel()
	if err := a.Bus.ForgetRecorded(ctx, rec.Request.ID); err != nil && !errors.Is(err, bus.ErrNoRecording) {
		return recordingFault(err)
	}
	_, err := query.DeleteResponse.Ask(a.Queries(), a.Bus, id)
	if f, ok := errors.AsType[*fault.Fault](err); err != nil && (!ok || f.Kind != fault.NotFound) {
		return err
	}
	return showJSON(x, query.ResponseDeleted{ID: id.ID, Object: "response", Deleted: true})
}
