package execute

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/embed"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// operation is what a client asks for: how its request goes to a provider, and what becomes of a good answer.
type operation interface {
	// streams says whether the client gets the answer as it comes. It is not compressed then, which would hold it back.
	streams() bool
	// media gives the types of the request's body and of the answer's.
	media() (content, accept string)
	// fits says why a link can't be asked; nil when it can.
	fits(l *link) *openai.RequestError
	// appendUpstream appends the body for the provider of a link.
	appendUpstream(dst []byte, l *link, w openai.Rewrite) []byte
	// send makes the call. The error may be an *openai.RequestError.
	send(ctx context.Context, l *link, call upstream.Call) (*dialect.Response, error)
	// pass passes a 2xx answer on and says what became of it. It closes resp.
	pass(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict
}

// errNoSurface says that a request came over a surface that this dispatcher does not know: it is older than the ingress.
var errNoSurface = errors.New("no such surface")

// read reads the body of a job. The ingress has done so before, so that an error is a fault inside the gateway.
func (e *Executor) read(j Job) (operation, error) {
	switch {
	case j.Request.Operation == contract.Embeddings:
		req, err := openai.ScanEmbeddings(j.Body)
		return embeddings{req}, err
	case j.Request.Operation.Passthrough():
		req, err := openai.ScanPassthrough(j.Body, j.Request.ContentType)
		return passthrough{req, j.Request}, err
	}
	s, ok := e.Surfaces[j.Request.Surface]
	if !ok {
		return nil, fmt.Errorf("%w: %q", errNoSurface, j.Request.Surface)
	}
	req, err := s.Read(j.Request, j.Body)
	if err != nil {
		return nil, err
	}
	if j.Request.Operation == contract.CountTokens {
		return newCounting(req, j.Request)
	}
	return &chat{request: req, envelope: j.Request}, nil
}

// chat asks for an answer of a model.
type chat struct {
	request  surface.Request
	envelope *contract.Request
	hub      *openai.Request // nil when no link needs it
	spoken   *openai.Request // for links whose providers speak the client's protocol and get it through the hub; nil when there is none
}

// fits puts the request into the hub for a link that needs it there.
func (o *chat) fits(l *link) *openai.RequestError {
	if o.bypass(l) != nil {
		return nil
	}
	_, err := o.inHub(l)
	bad, _ := errors.AsType[*openai.RequestError](err)
	return bad
}

// inHub gives the request in the hub for a link.
func (o *chat) inHub(l *link) (hub *openai.Request, err error) {
	if o.speaks(l) {
		if r, ok := o.request.(surface.Spoken); ok {
			o.spoken, err = r.Spoken()
			return o.spoken, err
		}
	}
	if o.hub == nil {
		o.hub, err = o.request.Chat()
	}
	return o.hub, err
}

func (o *chat) streams() bool {
	if hub := cmp.Or(o.hub, o.spoken); hub != nil {
		return hub.Stream
	}
	return o.envelope.Stream
}

func (o *chat) media() (content, accept string) {
	if o.streams() {
		return contentJSON, "text/event-stream"
	}
	return contentJSON, contentJSON
}

// choices is how many answers the client wants.
func (o *chat) choices() int {
	if hub := cmp.Or(o.hub, o.spoken); hub != nil {
		return hub.Choices
	}
	if r, ok := o.request.(interface{ Choices() int }); ok {
		return r.Choices()
	}
	return 1
}

func (o *chat) appendUpstream(dst []byte, l *link, w openai.Rewrite) []byte {
	if o.bypass(l) != nil {
		return o.request.(surface.Native).AppendNative(dst, w) //nolint:forcetypeassert // bypass has asked
	}
	hub, err := o.inHub(l)
	if err != nil { // another model of the channel, which has patches of its own; send says so
		return nil
	}
	return hub.AppendUpstream(dst, w)
}

func (o *chat) send(ctx context.Context, l *link, call upstream.Call) (*dialect.Response, error) {
	if d := o.bypass(l); d != nil {
		return d.Native(ctx, withClients(call, o.envelope))
	}
	if bad := o.fits(l); bad != nil {
		return nil, bad
	}
	return l.Channel.Dialect.Chat(ctx, call)
}

func (o *chat) pass(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	defer resp.Close()
	body, err := resp.Sniff()
	switch {
	case err != nil:
		return a.cutOff(ctx, resp.Context(), err)
	case body == dialect.JSON:
		return o.whole(ctx, a, resp)
	case body == dialect.Other:
		return never(a.judge(ctx, resp.Response))
	case o.streams():
		return o.relay(ctx, a, resp)
	}
	return o.collect(ctx, a, resp)
}

// embeddings asks for vectors.
type embeddings struct{ request *openai.EmbeddingRequest }

func (embeddings) streams() bool { return false }

func (embeddings) media() (content, accept string) { return contentJSON, contentJSON }

func (embeddings) fits(*link) *openai.RequestError { return nil }

func (o embeddings) appendUpstream(dst []byte, _ *link, w openai.Rewrite) []byte {
	return o.request.AppendUpstream(dst, w)
}

func (o embeddings) send(ctx context.Context, l *link, call upstream.Call) (*dialect.Response, error) {
	resp, err := l.Channel.Dialect.Embed(ctx, call)
	if errors.Is(err, dialect.ErrUnsupported) {
		return nil, &openai.RequestError{Message: "The provider " + quoted(l.Channel.Provider) + " offers no embeddings", Param: "model"}
	}
	return dialect.Plain(resp, err)
}

// pass passes the vectors on, in the form that the client asked for.
func (o embeddings) pass(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	defer resp.Close()
	body, err := readAll(resp.Response)
	if err != nil {
		return a.cutOff(ctx, resp.Context(), err)
	}
	name := ""
	if a.routed() {
		name = a.run.job.Request.Model // C-07
	}
	out, usage, err := embed.Answer(o.request, body, name)
	if err != nil {
		if v := classify.Of(a.answerOf(resp.Response, body)); v.Class != classify.Success {
			return v
		}
		return classify.Ended(err)
	}
	a.countUsage(stream.Usage(usage))
	return a.deliver(ctx, contentJSON, out)
}
