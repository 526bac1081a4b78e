package execute

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

var errTooLong = errors.New("answer is larger than the limit")

// firstRoom is the most that is reserved for an answer before any of it has come.
const firstRoom = 1 << 20

// readAll reads a whole JSON answer.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length > maxJSONBody {
		return nil, errTooLong
	}
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), firstRoom)) + bytes.MinRead) // a length is only an announcement
	_, err := b.ReadFrom(io.LimitReader(r, maxJSONBody+1))
	if err == nil && b.Len() > maxJSONBody {
		err = errTooLong
	}
	return b.Bytes(), err
}

// passJSON passes a JSON answer on, as a stream if the client asked for one (STR-10).
func (a *attempt) passJSON(ctx context.Context, resp *upstream.Response, r io.Reader) classify.Verdict {
	body, err := readAll(r, resp.Length)
	if err != nil {
		return a.cutOff(ctx, resp.Context(), err)
	}
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	if !ordinary(body) {
		if v := classify.Of(a.answerOf(resp, body)); v.Class != classify.Success {
			return v
		}
		if !gjson.ValidBytes(body) {
			return classify.Ended(classify.ErrTruncated)
		}
	}
	if !stream.IsAnswer(body) {
		return classify.Ended(classify.ErrEmptyAnswer)
	}
	a.countUsage(stream.UsageOf(body))
	if a.req.stream() {
		return a.deliver(ctx, contentEvents, stream.Synthesize(nil, body, a.streamOptions()))
	}
	return a.deliver(ctx, contentJSON, stream.Completion(body, a.streamOptions()))
}

// ordinary says that a body is what it should be: a whole answer without any error, which ended as answers end. It spares such a body the
// table of what else an answer may be.
func ordinary(body []byte) bool {
	var c openai.Chunk
	if c.Parse(body); !c.Valid || !c.Plain || !c.Error.IsZero() || len(c.Choices) == 0 {
		return false
	}
	for i := range c.Choices {
		finish := c.Choices[i].Finish.Of(body)
		if !rawjson.Is(finish, "stop") && !rawjson.Is(finish, "length") && !rawjson.Is(finish, "tool_calls") {
			return false
		}
	}
	return true
}

// collect turns an event stream into the JSON answer that the client asked for.
func (a *attempt) collect(ctx context.Context, resp *upstream.Response, r io.Reader) classify.Verdict {
	events := openai.NewReader(r, maxEvent)
	all := stream.NewCollector(a.streamOptions())
	var graceTimer *time.Timer
	defer func() {
		if graceTimer != nil {
			graceTimer.Stop()
		}
	}()
	for !all.Done() {
		if all.Finished() && graceTimer == nil {
			graceTimer = time.AfterFunc(grace, func() { resp.Abort(errGraceOver) })
		}
		event, err := events.Next()
		if errors.Is(err, io.EOF) || err != nil && all.Finished() {
			break
		}
		if err != nil {
			return a.cutOff(ctx, resp.Context(), err)
		}
		problem, err := all.Add(event)
		if err != nil {
			return classify.Ended(err)
		}
		if problem != nil {
			if v, bad := a.eventVerdict(resp, problem); bad {
				return v
			}
		}
	}
	body, err := all.Completion()
	if err != nil {
		return classify.Ended(err)
	}
	a.countUsage(all.Usage())
	return a.deliver(ctx, contentJSON, body)
}

const (
	contentJSON   = "application/json"
	contentEvents = "text/event-stream; charset=utf-8"
)

// deliver sends a whole answer.
func (a *attempt) deliver(ctx context.Context, contentType string, body []byte) classify.Verdict {
	success := classify.Verdict{Class: classify.Success}
	a.begin()
	a.settle(success)
	sending, stop := delivery(ctx)
	defer stop()
	if err := errors.Join(a.sink.Head(a.head(contentType)), a.sink.Data(sending, body)); err != nil {
		return a.unwritten(ctx, err)
	}
	return success
}

func (a *attempt) streamOptions() stream.Options {
	o := stream.Options{Think: a.Channel.Think, IncludeUsage: a.req.chat.IncludeUsage, Choices: a.req.chat.Choices}
	if !a.job.Request.Decision.Configured {
		a.disclose(&o)
	}
	return o
}
