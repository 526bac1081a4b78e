package execute

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// counting asks how many tokens a request has. Only a provider that speaks the client's protocol is asked; else the answer is the gateway's estimate.
type counting struct {
	request  surface.Native
	envelope *contract.Request
}

var errNoCount = errors.New("requests of this surface are not counted")

func newCounting(req surface.Request, envelope *contract.Request) (operation, error) {
	native, ok := req.(surface.Native)
	if !ok {
		return nil, errNoCount
	}
	return counting{native, envelope}, nil
}

func (o counting) fits(l *link) *openai.RequestError {
	if d, ok := l.Channel.Dialect.(dialect.Bypass); ok && d.Surface() == o.envelope.Surface {
		return nil
	}
	return &openai.RequestError{Message: "The provider " + quoted(l.Channel.Provider) + " counts no tokens", Param: "model"}
}

func (counting) media() (content, accept string) { return contentJSON, contentJSON }

func (counting) streams() bool { return false }

func (o counting) appendUpstream(dst []byte, _ *link, w openai.Rewrite) []byte {
	w.Front = nil
	return o.request.AppendNative(dst, w)
}

func (o counting) send(ctx context.Context, l *link, call upstream.Call) (*dialect.Response, error) {
	return dialect.Plain(l.Channel.Dialect.(dialect.Bypass).CountTokens(ctx, withClients(call, o.envelope))) //nolint:forcetypeassert // the others are out
}

func (counting) pass(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	defer resp.Close()
	body, err := readAll(resp.Response)
	if err != nil {
		return a.cutOff(ctx, resp.Context(), err)
	}
	if !rawjson.Valid(body) || rawjson.Get(body, "input_tokens") == nil {
		return never(classify.Of(a.answerOf(resp.Response, body)))
	}
	return a.deliver(ctx, contentJSON, body)
}

// uncounted says whether an error is none of the client's, who would else have to know what a provider refuses of its request.
func uncounted(err error) bool {
	f, ok := errors.AsType[*fault.Fault](err)
	return ok && (f.Kind != fault.Refused || f.Status() != http.StatusBadRequest)
}

// estimate answers with the estimated size of the request where nobody could count.
func (o counting) estimate(ctx context.Context, r *run) error {
	r.record.Status = statusSuccess
	head := contract.Head{Status: http.StatusOK, Header: [][2]string{{"Content-Type", contentJSON}}}
	body := append(strconv.AppendInt([]byte(`{"input_tokens":`), o.envelope.Traits.Tokens, 10), '}')
	return errors.Join(r.sink.Head(head), r.sink.Data(context.WithoutCancel(ctx), body))
}
