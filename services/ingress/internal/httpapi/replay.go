package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/bus"
	"hydrallm/shared/surface/responses"
)

// replayPing is how long the stream of a recorded answer may be silent. A client that has left is noticed then.
const replayPing = 10 * time.Second

// replay is the body of a stream that is read from a recording, for fasthttp. It goes on with the answer while that is recorded.
type replay struct {
	api    *API
	rid    string
	source *bus.Replay
	player *responses.Player
	after  int // number of the event that the client has seen last, -1 = none
	served *serving
	writer deadlineWriter

	buf    []byte // events that are to be written
	sent   int64
	closed bool
}

// replay answers with the stream of a recorded answer, from the event behind the one that the client has seen.
func (a *API) replay(x *exchange, rid string, queued []byte, after int, served *serving) {
	x.SetStatusCode(fasthttp.StatusOK)
	x.Response.Header.SetContentType("text/event-stream; charset=utf-8")
	setStreamHeaders(&x.Response)
	r := &replay{api: a, rid: rid, source: a.Bus.Replay(rid), after: after, served: served, writer: deadlineWriter{conn: x.Conn()}}
	r.player = responses.NewPlayer(queued, r.take)
	if !x.Request.Header.IsHTTP11() {
		x.hijack(r, &r.writer)
		return
	}
	x.Response.ImmediateHeaderFlush = true
	x.Response.SetBodyStream(r, -1)
}

// take takes an event that the player has made.
func (r *replay) take(number int, event []byte) {
	if number > r.after {
		r.buf = append(r.buf, event...)
	}
}

// WriteTo writes the stream to its end. An error means that the client has gone.
func (r *replay) WriteTo(w io.Writer) (int64, error) {
	for {
		if err := r.flush(w); err != nil {
			return r.sent, err
		}
		ctx, cancel := context.WithTimeout(r.api.Queries(), replayPing)
		piece, err := r.source.Next(ctx)
		silent := ctx.Err() != nil && r.api.Queries().Err() == nil
		cancel()
		switch {
		case err == nil:
			err = r.player.Take(piece.Frames)
		case errors.Is(err, bus.ErrReplayed):
			return r.sent, nil
		case silent:
			r.buf = append(r.buf, ping...)
			err = r.exists()
		}
		if err != nil { // without the last event, so that the client knows that there is more
			r.api.Log.Warn("stream of a recorded answer breaks off", slog.String("rid", r.rid), slog.Any("error", err))
			return r.sent, r.flush(w)
		}
	}
}

// exists gives an error when the recording has been removed, so that nothing can follow.
func (r *replay) exists() error {
	ctx, cancel := context.WithTimeout(r.api.Queries(), replayPing)
	defer cancel()
	if err := r.source.Exists(ctx); errors.Is(err, bus.ErrNoRecording) {
		return err
	}
	return nil // it is asked again
}

// maxReplayBuffer is the largest buffer that is kept for the next piece.
const maxReplayBuffer = 256 << 10

func (r *replay) flush(w io.Writer) error {
	if len(r.buf) == 0 {
		return nil
	}
	if err := r.writer.write(w, r.buf); err != nil {
		return err
	}
	r.sent += int64(len(r.buf))
	if r.buf = r.buf[:0]; cap(r.buf) > maxReplayBuffer {
		r.buf = nil
	}
	return nil
}

// SupportsBodyWriteTo makes fasthttp use WriteTo.
func (r *replay) SupportsBodyWriteTo() bool { return true }

// Read is never used, since fasthttp uses WriteTo.
func (r *replay) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }

// Close ends the exchange. fasthttp calls it whatever happened to the body.
func (r *replay) Close() error {
	if r.closed {
		return nil
	}
	r.closed = true
	r.source.Close()
	r.api.Metrics.sent.Add(float64(r.sent))
	r.served.end(fasthttp.StatusOK)
	return nil
}

var _ fasthttp.BodyWriterTo = (*replay)(nil)
