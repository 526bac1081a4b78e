package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// statusGone marks an exchange whose client has left, for the metrics; nobody reads it.
const statusGone = 499

// maxAnswer bounds an answer that is not a stream.
const maxAnswer = 64 << 20

// answer waits until the pipeline commits to an answer and turns it into a response. When streaming is true, the response is still to
// be written, and the stream removes pend at its end.
func (a *API) answer(x *exchange, pend *pending.Request, received time.Time, served *serving) (streaming bool, err error) {
	raw, err := pend.Head()
	if errors.Is(err, pending.ErrSilent) {
		a.streamEarly(x, pend, received, served)
		return true, nil
	}
	if err != nil {
		return false, a.unanswered(x, err)
	}
	a.Metrics.committed(time.Since(received))
	head, err := a.heads.parse(raw)
	if err != nil {
		a.Pending.Fail(pend, pending.ErrMalformed)
		return false, lostFault(err)
	}
	served.answeredBy(head)
	if !head.stream {
		return false, a.collect(x, pend, head)
	}
	head.apply(x)
	s := a.newStream(x, pend, served)
	s.events = head.events
	a.stream(x, s)
	return true, nil
}

// unanswered gives the fault for an answer that failed before anything of it was sent. A client that has gone gets none.
func (a *API) unanswered(x *exchange, err error) error {
	if errors.Is(err, pending.ErrGone) {
		x.SetStatusCode(statusGone)
		x.SetConnectionClose()
		return nil
	}
	return lostFault(err)
}

// collect answers with the whole body at once.
func (a *API) collect(x *exchange, pend *pending.Request, head *head) error {
	parts, size, err := a.gather(pend)
	if err != nil {
		return a.unanswered(x, err)
	}
	head.apply(x)
	if head.refusal {
		x.caller().refused(head.status, codeOf(bytes.Join(parts, nil)), nil)
	}
	a.whole(x, parts, size)
	return nil
}

// gather waits for a whole body, of size bytes.
func (a *API) gather(pend *pending.Request) (parts [][]byte, size int, err error) {
	var done credit
	for {
		p := pend.Next(nil)
		for _, data := range p.Data {
			size += len(data)
		}
		parts = append(parts, p.Data...)
		switch {
		case size > maxAnswer:
			a.Pending.Fail(pend, pending.ErrOverflow)
			return nil, 0, pending.ErrOverflow
		case p.Err != nil:
			return nil, 0, p.Err
		case p.End:
			a.Metrics.sent.Add(float64(size))
			return parts, size, nil
		}
		a.grant(pend, &done, uint64(size))
		if p.Working {
			a.sendCredit(pend, uint64(size))
		}
	}
}

// whole sets the body. A single small part, the usual case, is sent from where it lies.
func (a *API) whole(x *exchange, parts [][]byte, size int) {
	if len(parts) == 1 && size <= maxPiece {
		x.Response.SetBodyRaw(parts[0])
		return
	}
	x.Response.SetBodyStream(&deadlineBody{parts: parts, writer: deadlineWriter{conn: x.Conn()}}, size)
}

// codeOf gives the code of an error body.
func codeOf(body []byte) string {
	return rawjson.Text(rawjson.Get(rawjson.Get(body, "error"), "code"))
}

// credit is how much of an answer its worker knows to be taken.
type credit uint64

// grant tells the worker of an answer that taken bytes are out of the way, in steps.
func (a *API) grant(pend *pending.Request, done *credit, taken uint64) {
	if taken-uint64(*done) >= bus.CreditStep {
		*done = credit(taken)
		a.sendCredit(pend, taken)
	}
}

// sendCredit tells the worker how much is taken. It is repeated when the worker shows itself without data: one that waits for a credit
// which was lost would wait for ever.
func (a *API) sendCredit(pend *pending.Request, taken uint64) {
	if taken == 0 || pend.Took(taken) {
		return
	}
	if err := a.Bus.Credit(pend.ID, taken); err != nil {
		a.Log.Warn("sending credit", slog.String("rid", pend.ID), slog.Any("error", err))
	}
}

// head is a decoded contract.Head.
type head struct {
	status  int
	events  bool // a stream of events follows
	stream  bool // what follows is sent on as it comes
	refusal bool // an error of the gateway itself: no upstream was asked
	header  [][2][]byte

	provider, model string // that answer; "" when there are none
}

// Headers of answers.
const (
	headerAttempts = "X-Gateway-Attempts" // how many upstreams were asked
	headerProvider = "X-Gateway-Provider"
	headerModel    = "X-Gateway-Model" // as the provider calls it
)

var eventStream = []byte("text/event-stream")

func decodeHead(raw []byte) (*head, error) {
	h, err := contract.ParseHead(raw)
	if err != nil {
		return nil, fmt.Errorf("reading the head of an answer: %w", err)
	}
	if h.Status < 200 || h.Status > 599 {
		return nil, fmt.Errorf("reading the head of an answer: %w: status %d", contract.ErrBadFrame, h.Status)
	}
	out := &head{status: h.Status, stream: h.Stream, refusal: h.Status >= fasthttp.StatusBadRequest}
	for _, kv := range h.Header {
		name, value := []byte(kv[0]), printable(kv[1])
		if !httpguts.ValidHeaderFieldName(kv[0]) {
			return nil, fmt.Errorf("reading the head of an answer: %w: the name of a header", contract.ErrBadFrame)
		}
		out.refusal = out.refusal && kv[0] != headerAttempts
		switch kv[0] {
		case headerProvider:
			out.provider = kv[1]
		case headerModel:
			out.model = kv[1]
		}
		if isContentType(name) {
			out.events = hasPrefixFold(value, eventStream)
			out.stream = out.stream || out.events
		}
		out.header = append(out.header, [2][]byte{name, value})
	}
	return out, nil
}

// printable gives a value without control characters: what a header tells, such as the name of a model, others may have written.
func printable(value string) []byte {
	b := []byte(value)
	for i, c := range b {
		if c < ' ' || c == 0x7f {
			b[i] = ' '
		}
	}
	return b
}

// apply sets status and headers. A client that has limits of its own is told nothing of those of the upstream.
func (h *head) apply(x *exchange) {
	resp, own := &x.Response, x.limited()
	resp.SetStatusCode(h.status)
	for _, kv := range h.header {
		switch {
		case isContentType(kv[0]):
			resp.Header.SetContentTypeBytes(kv[1])
		case own && isRateLimit(kv[0]):
		default:
			resp.Header.SetCanonical(kv[0], kv[1])
		}
	}
	if h.events {
		setStreamHeaders(resp)
	}
}

func setStreamHeaders(resp *fasthttp.Response) {
	resp.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
	resp.Header.Set("X-Accel-Buffering", "no") // or nginx collects the stream
}
