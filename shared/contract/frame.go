package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

// FrameKind is the first byte of a reply frame.
type FrameKind byte

// Kinds of reply frames. An answer is one head, any number of data frames and one end, in this order.
const (
	FrameHead FrameKind = 'h' // JSON of Head; committed: nothing may be taken back after it
	FrameData FrameKind = 'd' // bytes of the response body
	FrameEnd  FrameKind = 'e' // JSON of End
)

// Frame is one step of an answer on its way from a worker to the ingress.
type Frame struct {
	Kind FrameKind
	Position
	Seq     uint64 // 0, 1, 2, ... per position; a gap is mended or an error, never a silent hole
	Payload []byte
}

// Head is the status line and the headers of the answer.
type Head struct {
	Status int         `json:"status"`
	Header [][2]string `json:"header,omitempty"`
	Stream bool        `json:"stream,omitempty"` // the body is to be sent on as it comes, as that of an event stream always is
}

// Outcomes of an answer.
const (
	OutcomeSuccess   = "success"
	OutcomeError     = "error"     // the client got an error: a status, or an error event in the stream
	OutcomeCancelled = "cancelled" // the client left
	OutcomeBroken    = "broken"    // the answer ends here, in the middle: what it is has no word for an error
)

// Reasons why a recorded answer was ended by somebody else than its worker.
const (
	ReasonWorkerLost = "worker_lost" // its worker died after content had come, or nobody took it over
	ReasonLifetime   = "lifetime"    // it took too long
	ReasonUnfinished = "unfinished"  // its worker could not finish it
	ReasonCancelled  = "cancelled"   // its client cancelled it
)

// End closes an answer.
type End struct {
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"` // of a recorded answer whose data has no end of its own

	// What the request used, as far as it is known: the tokens of its last call, as in its RequestRecord, and the cost of all of them.
	Prompt     int64 `json:"prompt_tokens,omitempty"`
	Completion int64 `json:"completion_tokens,omitempty"`
	Total      int64 `json:"total_tokens,omitempty"`
	CostNanos  int64 `json:"cost_nanos,omitempty"`
}

// AppendFrame adds one encoded frame to dst: kind, position, sequence and payload length as uvarints, then the payload. One message may hold
// several frames.
func AppendFrame(dst []byte, f Frame) []byte {
	dst = f.Append(append(dst, byte(f.Kind)))
	dst = binary.AppendUvarint(dst, f.Seq)
	dst = binary.AppendUvarint(dst, uint64(len(f.Payload)))
	return append(dst, f.Payload...)
}

// growingSize is how many bytes hold the payload length of a frame that grows: a uvarint with leading zeros, which reads like any other.
const growingSize = 3

// MaxGrowing is the largest payload of a frame that grows, in bytes.
const MaxGrowing = 1<<(7*growingSize) - 1

// AppendGrowing adds a frame to dst, as AppendFrame does, to which GrowFrame can add more as long as nothing follows it. Its payload begins at
// start.
func AppendGrowing(dst []byte, f Frame) (buf []byte, start int) {
	dst = f.Append(append(dst, byte(f.Kind)))
	dst = binary.AppendUvarint(dst, f.Seq)
	dst = append(dst, make([]byte, growingSize)...)
	start = len(dst)
	return GrowFrame(dst, start, f.Payload), start
}

// GrowFrame adds p to the payload that begins at start and ends with buf. The payload may become MaxGrowing bytes.
func GrowFrame(buf []byte, start int, p []byte) []byte {
	buf = append(buf, p...)
	size := len(buf) - start
	for i := range growingSize {
		more := byte(0x80)
		if i == growingSize-1 {
			more = 0
		}
		buf[start-growingSize+i] = byte(size>>(7*i))&0x7f | more
	}
	return buf
}

// ErrBadFrame says that a reply message is not a sequence of whole frames.
var ErrBadFrame = errors.New("malformed reply frame")

// Frames reads the frames of one message. Payloads alias msg. After an error the sequence ends.
func Frames(msg []byte) iter.Seq2[Frame, error] {
	return func(yield func(Frame, error) bool) {
		for len(msg) > 0 {
			f, n, err := decodeFrame(msg)
			if err != nil {
				yield(Frame{}, err)
				return
			}
			msg = msg[n:]
			if !yield(f, nil) {
				return
			}
		}
	}
}

func decodeFrame(msg []byte) (Frame, int, error) {
	f := Frame{Kind: FrameKind(msg[0])}
	switch f.Kind {
	case FrameHead, FrameData, FrameEnd:
	default:
		return f, 0, fmt.Errorf("%w: kind %#x", ErrBadFrame, msg[0])
	}
	var n int
	if f.Position, n = ParsePosition(msg[1:]); n == 0 {
		return f, 0, fmt.Errorf("%w: no position", ErrBadFrame)
	}
	pos := 1 + n
	var size uint64
	for _, field := range []*uint64{&f.Seq, &size} {
		v, n := binary.Uvarint(msg[pos:])
		if n <= 0 {
			return f, 0, fmt.Errorf("%w: number at byte %d", ErrBadFrame, pos)
		}
		*field, pos = v, pos+n
	}
	if size > uint64(len(msg)-pos) {
		return f, 0, fmt.Errorf("%w: payload of %d bytes in %d", ErrBadFrame, size, len(msg)-pos)
	}
	f.Payload = msg[pos : pos+int(size)]
	return f, pos + int(size), nil
}
