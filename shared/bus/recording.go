package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// Errors of recordings.
var (
	ErrNoRecording = errors.New("no such recording") // or it has expired
	// ErrSuperseded says that somebody else has written to the recording meanwhile: the worker that took the request over, or whoever ended it.
	ErrSuperseded = errors.New("recording was continued by another writer")
)

// RecordingState says how far a recorded answer has come.
type RecordingState string

// The states, in their order.
const (
	RecordingQueued    RecordingState = "queued"    // no worker has begun
	RecordingRunning   RecordingState = "running"   // a worker has begun, and nothing of the answer has come
	RecordingAnswering RecordingState = "answering" // frames have come: nobody else may answer any more
	RecordingEnded     RecordingState = "ended"
)

// Headers of the messages of a recording. Each states all, so that the last one alone tells where it stands.
const (
	headerState  = "Hydra-State"
	headerWorker = "Hydra-Worker" // id of the bus that has the request, or had it last
	headerRuns   = "Hydra-Runs"   // the deliveries at which workers have begun, with commas
)

// tail is the last message of a recording, which is also its fence: who writes the next one has to know it.
type tail struct {
	sequence uint64
	state    RecordingState
	worker   string
	ran      []uint64  // deliveries at which workers have begun and did not hand it back
	deadline time.Time // end of the request's lifetime
}

// MaxNote bounds what a recording begins with.
const MaxNote = 384 << 10

// Record begins the recording of the answer to a request that no ingress owns. note is for those who read it, at most MaxNote bytes. A second
// recording under the same id is refused with ErrSuperseded.
func (b *Bus) Record(ctx context.Context, req *contract.Request, note []byte) error {
	if len(note) > MaxNote {
		return fmt.Errorf("recording an answer: the note has %d bytes", len(note))
	}
	t := tail{state: RecordingQueued, deadline: req.StartBy}
	_, err := b.extend(ctx, req.ID, t, t, note, req.Header())
	return err
}

// extend writes the next message of a recording: what it states is next, and it comes right behind last, as storeBehind has it.
func (b *Bus) extend(ctx context.Context, rid string, last, next tail, payload []byte, header nats.Header) (tail, error) {
	if header == nil {
		header = nats.Header{contract.HeaderDeadline: {strconv.FormatInt(next.deadline.UnixMilli(), 10)}}
	}
	header[headerState], header[headerWorker], header[headerRuns] = []string{string(next.state)}, []string{next.worker}, []string{joinNumbers(next.ran)}
	sequence, err := b.storeBehind(ctx, &nats.Msg{Subject: subject.Recording(rid), Header: header, Data: payload}, last.sequence)
	if err != nil {
		return next, fmt.Errorf("recording an answer: %w", err)
	}
	next.sequence = sequence
	return next, nil
}

// storeBehind publishes msg right behind the message of its subject with the sequence last, 0 for none. The error is ErrSuperseded when that is not the
// last one any more. It waits as store does, and a message is recognised when it has to be repeated.
func (b *Bus) storeBehind(ctx context.Context, msg *nats.Msg, last uint64) (sequence uint64, err error) {
	id := rand.Text()
	msg.Header[nats.MsgIdHdr] = []string{id}
	msg.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(last, 10)}
	sequence, err = b.storeAt(ctx, msg)
	if !conflict(err) {
		return sequence, err
	}
	// An earlier try may have been stored although nothing was heard of it.
	if stored, err := b.lastMessage(ctx, msg.Subject); err == nil && stored.Header.Get(nats.MsgIdHdr) == id {
		return stored.Sequence, nil
	}
	return 0, ErrSuperseded
}

// conflict says whether a publish was refused because its expectation of the last message is wrong. Replicated streams have a code of their own.
func conflict(err error) bool {
	api, ok := errors.AsType[jetstream.JetStreamError](err)
	if !ok || api.APIError() == nil {
		return false
	}
	code := api.APIError().ErrorCode
	return code == jetstream.JSErrCodeStreamWrongLastSequence || code == jetstream.JSErrCodeStreamWrongLastSequenceConstant
}

func (b *Bus) lastMessage(ctx context.Context, subj string) (*jetstream.RawStreamMsg, error) {
	return b.recorded(ctx, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, subj)
	})
}

func (b *Bus) firstMessage(ctx context.Context, subj string) (*jetstream.RawStreamMsg, error) {
	return b.recorded(ctx, func(ctx context.Context, s jetstream.Stream) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, 1, jetstream.WithGetMsgSubject(subj))
	})
}

// recorded reads a message of the stream of recordings. While the server is away it waits, until ctx ends.
func (b *Bus) recorded(ctx context.Context, get func(context.Context, jetstream.Stream) (*jetstream.RawStreamMsg, error)) (m *jetstream.RawStreamMsg, err error) {
	tries := 0
	err = b.persist(ctx, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, tryLimit(tries), errNoAck)
		defer cancel()
		tries++
		s, err := b.openOnce(ctx, &b.recordings, subject.RecordingsStream)
		if err == nil {
			m, err = get(ctx, s)
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return err
	})
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return nil, ErrNoRecording
	case err != nil:
		return nil, fmt.Errorf("reading a recording: %w", err)
	}
	return m, nil
}

// named says whether a recording can have this id, which may come from a client.
func named(rid string) bool { return rid != "" && !strings.ContainsAny(rid, ".*> \t\r\n") }

func (b *Bus) tailOf(ctx context.Context, rid string) (tail, error) {
	if !named(rid) {
		return tail{}, ErrNoRecording
	}
	m, err := b.lastMessage(ctx, subject.Recording(rid))
	if err != nil {
		return tail{}, err
	}
	return readTail(m.Header, m.Sequence), nil
}

func joinNumbers(list []uint64) string {
	var text []byte
	for i, n := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, n, 10)
	}
	return string(text)
}

func splitNumbers(text string) (list []uint64) {
	for word := range strings.SplitSeq(text, ",") {
		if n, err := strconv.ParseUint(word, 10, 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}

func readTail(h nats.Header, sequence uint64) tail {
	ms, _ := strconv.ParseInt(h.Get(contract.HeaderDeadline), 10, 64)
	return tail{
		sequence: sequence, state: RecordingState(h.Get(headerState)), worker: h.Get(headerWorker), ran: splitNumbers(h.Get(headerRuns)), deadline: time.UnixMilli(ms),
	}
}

// end ends a recording behind its last message. The error is ErrSuperseded when that is another one by now.
func (b *Bus) end(ctx context.Context, rid string, last tail, e contract.End) error {
	next := last
	next.state = RecordingEnded
	_, err := b.extend(ctx, rid, last, next, endFrame(e), nil)
	return err
}

func endFrame(e contract.End) []byte {
	return contract.AppendFrame(nil, contract.Frame{Kind: contract.FrameEnd, Position: recordedAt, Payload: e.AppendJSON(nil)})
}

// recordedAt is the position of all frames of recordings, where only one worker can write.
var recordedAt = contract.Position{Stage: contract.StageEnriched, Delivery: 1}

// Recording is what is known of a recorded answer before it is read.
type Recording struct {
	Request *contract.Request // as it was when it came
	Note    []byte            // that the recording began with
	State   RecordingState
	End     contract.End // once it has ended
	last    uint64
}

// Recorded looks for the answer to a request. The error is ErrNoRecording when there is none, or its beginning has expired.
func (b *Bus) Recorded(ctx context.Context, rid string) (*Recording, error) {
	if !named(rid) {
		return nil, ErrNoRecording
	}
	first, err := b.firstMessage(ctx, subject.Recording(rid))
	if err != nil {
		return nil, err
	}
	req, err := contract.ParseRequest(first.Header)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoRecording, err)
	}
	last, err := b.lastMessage(ctx, subject.Recording(rid))
	if err != nil {
		return nil, err
	}
	rec := &Recording{Request: req, Note: first.Data, State: readTail(last.Header, last.Sequence).state, last: last.Sequence}
	if rec.State != RecordingEnded {
		return rec, nil
	}
	for f, err := range contract.Frames(last.Data) {
		if err == nil && f.Kind == contract.FrameEnd {
			rec.End, err = contract.ParseEnd(f.Payload)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: reading its end: %w", ErrNoRecording, err)
		}
	}
	return rec, nil
}

// CancelRecorded ends the answer to a request, unless it has ended, and stops whoever works on it. It may be repeated.
func (b *Bus) CancelRecorded(ctx context.Context, rid string) error {
	for {
		t, err := b.tailOf(ctx, rid)
		if err != nil {
			return err
		}
		if t.state != RecordingEnded {
			err = b.end(ctx, rid, t, contract.End{Outcome: contract.OutcomeCancelled, Reason: contract.ReasonCancelled})
		}
		if errors.Is(err, ErrSuperseded) {
			continue // its worker was faster
		}
		return errors.Join(err, b.Cancel(rid))
	}
}

// ForgetRecorded removes the recorded answer to a request, and stops whoever works on it.
func (b *Bus) ForgetRecorded(ctx context.Context, rid string) error {
	if err := b.CancelRecorded(ctx, rid); err != nil {
		return err
	}
	s, err := b.openOnce(ctx, &b.recordings, subject.RecordingsStream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject.Recording(rid)))
	}
	if err != nil {
		return fmt.Errorf("removing a recording: %w", err)
	}
	return nil
}
