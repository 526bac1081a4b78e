package execute

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// passthrough asks for what is passed as it is: moderations, sound, images, ranks.
type passthrough struct {
	request  *openai.PassthroughRequest
	envelope *contract.Request
}

func (passthrough) streams() bool { return true }

func (o passthrough) media() (content, accept string) {
	return cmp.Or(o.envelope.ContentType, contentJSON), "*/*"
}

func (o passthrough) fits(l *link) *openai.RequestError {
	c := l.Channel
	if c.Passes {
		return nil
	}
	return &openai.RequestError{Message: "The provider " + quoted(c.Provider) + " has another API, without /" + string(o.envelope.Operation), Param: "model"}
}

func (o passthrough) appendUpstream(dst []byte, _ *link, w openai.Rewrite) []byte {
	return o.request.AppendUpstream(dst, w)
}

func (o passthrough) send(ctx context.Context, l *link, call upstream.Call) (*dialect.Response, error) {
	return dialect.Plain(l.Channel.Dialect.Pass(ctx, call, "/"+string(o.envelope.Operation)))
}

// piece is how much of an answer is read at once.
const piece = 32 << 10

// pass commits to the answer with its headers, and passes it on as it comes. A page is no answer.
func (o passthrough) pass(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	defer resp.Close()
	kind := cmp.Or(resp.Header.Get("Content-Type"), "application/octet-stream")
	media := strings.ToLower(kind)
	if strings.HasPrefix(media, "text/html") {
		return never(a.judge(ctx, resp.Response))
	}
	head := a.head(kind)
	head.Stream = true
	a.begin()
	sending, stop := delivery(resp.Context())
	defer stop()
	if err := errors.Join(a.run.sink.Head(head), a.run.sink.Flush()); err != nil {
		return a.unwritten(ctx, err)
	}
	meter := stream.NewMeter(strings.HasPrefix(media, "text/event-stream"))
	defer func() { a.countUsage(meter.Usage()) }()
	silence := newSilence(a.run.exec.Limits.IdleTimeout, resp.Response)
	defer silence.stop()
	for p := make([]byte, piece); ; {
		silence.begin()
		n, err := resp.Body.Read(p)
		silence.stop()
		meter.Write(p[:n])
		if n > 0 {
			if err := errors.Join(a.run.sink.Data(sending, p[:n]), a.run.sink.Flush()); err != nil { //nolint:contextcheck // it lives as long as the call
				return a.unwritten(ctx, err)
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return classify.Verdict{Class: classify.Success}
		case err != nil:
			a.sent = broken
			return a.cutOff(ctx, resp.Context(), err)
		}
	}
}

// silence ends a call whose body says nothing for too long.
type silence struct {
	limit time.Duration // 0 = none
	timer *time.Timer
}

func newSilence(limit time.Duration, resp *upstream.Response) *silence {
	if limit == 0 {
		return &silence{}
	}
	s := &silence{limit: limit, timer: time.AfterFunc(limit, func() { resp.Abort(classify.ErrIdleTimeout) })}
	s.stop()
	return s
}

func (s *silence) begin() {
	if s.timer != nil {
		s.timer.Reset(s.limit)
	}
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
	}
}
