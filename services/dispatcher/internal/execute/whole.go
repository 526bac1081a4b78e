package execute

import (
	"bytes"
	"context"
	"errors"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// firstRoom is the most that is reserved for an answer before any of it has come.
const firstRoom = 1 << 20

// readAll reads a whole body.
func readAll(resp *upstream.Response) ([]byte, error) {
	if resp.Length > maxJSONBody {
		return nil, classify.ErrTooLarge
	}
	var b bytes.Buffer
	b.Grow(int(min(max(resp.Length, 0), firstRoom)) + bytes.MinRead) // a length is only an announcement
	_, err := b.ReadFrom(io.LimitReader(resp.Body, maxJSONBody+1))
	if err == nil && b.Len() > maxJSONBody {
		err = classify.ErrTooLarge
	}
	return b.Bytes(), err
}

// whole passes a whole answer on, as a stream if the client asked for one (STR-10).
func (o *chat) whole(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	body, err := readAll(resp.Response)
	if err != nil {
		return a.cutOff(ctx, resp.Context(), err)
	}
	body = bytes.Trim(body, " \t\r\n\ufeff") // some upstreams send blank lines while they work
	var c answer.Chunk
	translated := resp.Whole(&c, body)
	a.countUsage(stream.UsageOf(&c)) // also of what turns out to be no answer
	if !translated && !ordinary(&c) {
		if v := classify.Of(a.answerOf(resp.Response, body)); v.Class != classify.Success {
			return v
		}
		if !gjson.ValidBytes(body) {
			return classify.Ended(classify.ErrTruncated)
		}
	}
	if !c.Answers() {
		return classify.Ended(classify.ErrEmptyAnswer)
	}
	return o.deliver(ctx, a, &c)
}

// ordinary says that an answer is what it should be: whole, without any error, and ended as answers end. It spares such a one the table of what
// else an answer may be.
func ordinary(c *answer.Chunk) bool {
	if !c.Valid || !c.Plain || c.Error != nil || len(c.Choices) == 0 {
		return false
	}
	for i := range c.Choices {
		finish := c.Choices[i].Finish
		if !rawjson.Is(finish, "stop") && !rawjson.Is(finish, "length") && !rawjson.Is(finish, "tool_calls") {
			return false
		}
	}
	return true
}

// deliver sends a whole answer, repaired.
func (o *chat) deliver(ctx context.Context, a *attempt, c *answer.Chunk) classify.Verdict {
	if !o.streams() && !c.Plain { // a piece of a stream, which has no message for a client to read
		all := stream.NewCollector(a.options(o))
		if _, err := all.Take(c); err != nil {
			return classify.Ended(err)
		}
		var err error
		if c, err = all.Whole(); err != nil {
			return classify.Ended(err)
		}
	}
	told := a.disclosure()
	told.Native = !o.streams() && c.Of != ""
	out := o.request.Answer(told)
	if !o.streams() {
		stream.Repair(c, a.options(o))
		a.countUsage(stream.UsageOf(c))
		return a.deliverWhole(ctx, out, c)
	}
	f := stream.NewFilter(a.options(o))
	var events []byte
	var said stream.Transcript
	take := func(pieces []*answer.Chunk) {
		a.tellEnds(pieces...)
		for _, piece := range pieces {
			events = out.Append(events, piece)
		}
		if a.run.inSession() {
			said.Take(pieces)
		}
	}
	take(f.Take(c).Chunks)
	end, err := f.End()
	if err != nil {
		return classify.Ended(err)
	}
	take(end.Chunks)
	a.countUsage(f.Usage())
	if a.run.inSession() {
		a.keep(ctx, contract.TurnAnswered, said.Whole(), out, false)
	}
	events = out.End(events, end)
	a.store(ctx, storedOf(out))
	return a.deliver(ctx, out.ContentType(), events)
}

// collect puts an event stream together to the whole answer that the client asked for.
func (o *chat) collect(ctx context.Context, a *attempt, resp *dialect.Response) classify.Verdict {
	room := takeRoom(resp.Body)
	defer room.giveBack()
	events, all := resp.Source(&room.events, &room.chunks), stream.NewCollector(a.options(o))
	defer func() { a.countUsage(all.Usage()) }() // also of what breaks off
	patience := grace
	var graceTimer *time.Timer // while a stream that looks finished may bring its usage
	stop := func() {
		if graceTimer != nil {
			graceTimer.Stop()
			graceTimer = nil
		}
	}
	defer stop()
	for {
		if all.Settled() && graceTimer == nil {
			graceTimer = time.AfterFunc(patience, func() { resp.Abort(errGraceOver) })
		}
		c, err := events.Next()
		if errors.Is(err, io.EOF) || err != nil && all.Finished() {
			break
		}
		if err != nil {
			return a.cutOff(ctx, resp.Context(), err)
		}
		step, err := all.Take(c)
		if err != nil {
			return classify.Ended(err)
		}
		if step.Problem != nil {
			if v, bad := a.eventVerdict(resp.Response, step.Problem); bad {
				return v
			}
		}
		if step.Done {
			break
		}
		if step.Resumed {
			stop()
			patience = longGrace
		}
	}
	whole, err := all.Whole()
	if err != nil {
		return classify.Ended(err)
	}
	a.countUsage(all.Usage())
	return a.deliverWhole(ctx, o.request.Answer(a.disclosure()), whole)
}

// deliverWhole sends a whole answer, which is kept before when it belongs to a session.
func (a *attempt) deliverWhole(ctx context.Context, out surface.Answer, c *answer.Chunk) classify.Verdict {
	a.tellEnds(c)
	body := out.Whole(c)
	if a.run.inSession() {
		a.keep(ctx, contract.TurnAnswered, c, out, false)
	}
	a.store(ctx, storedOf(out))
	return a.deliver(ctx, contentJSON, body)
}

const contentJSON = "application/json"

// deliver sends a whole body.
func (a *attempt) deliver(ctx context.Context, contentType string, body []byte) classify.Verdict {
	success := classify.Verdict{Class: classify.Success}
	a.begin()
	a.settle(success)
	sending, stop := delivery(ctx)
	defer stop()
	if err := errors.Join(a.run.sink.Head(a.head(contentType)), a.run.sink.Data(sending, body)); err != nil {
		return a.unwritten(ctx, err)
	}
	return success
}
