package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

// Sign is a sign of life about a request: a worker has it, or, with a delivery of 0, the stage before has finished and it waits for a worker of
// this one.
type Sign struct {
	Position
	RequestID string

	// Sent is how many frames of the answer must have come by now, unless they are lost. Those that have not, the worker can send again.
	Sent uint64
}

// Heard is what the ingress says to a sign that is not all right.
type Heard struct {
	RequestID string
	Unwanted  bool   // nobody awaits the request
	Lacks     bool   // frames that were sent have not come
	From      uint64 // with Lacks, the number of the first of them
}

// Fine says that there is nothing to say to a sign.
func (h Heard) Fine() bool { return !h.Unwanted && !h.Lacks }

// AppendSigns adds an encoded report of a worker to dst: its id, and the requests that it speaks of.
func AppendSigns(dst []byte, worker string, signs ...Sign) []byte {
	dst = appendWord(dst, worker)
	for _, s := range signs {
		dst = s.AppendTo(dst)
	}
	return dst
}

// AppendTo adds one more sign to a report.
func (s Sign) AppendTo(report []byte) []byte {
	return binary.AppendUvarint(appendWord(s.Append(report), s.RequestID), s.Sent)
}

// ErrBadSigns says that a message is not a report of a worker.
var ErrBadSigns = errors.New("malformed signs of life")

// Signs reads a report. After an error the sequence ends.
func Signs(msg []byte) (worker string, signs iter.Seq2[Sign, error], err error) {
	worker, n := word(msg)
	if n == 0 {
		return "", nil, fmt.Errorf("%w: no worker", ErrBadSigns)
	}
	msg = msg[n:]
	return worker, func(yield func(Sign, error) bool) {
		for len(msg) > 0 {
			s, n := sign(msg)
			if n == 0 {
				yield(Sign{}, fmt.Errorf("%w: %d bytes at the end", ErrBadSigns, len(msg)))
				return
			}
			msg = msg[n:]
			if !yield(s, nil) {
				return
			}
		}
	}, nil
}

func sign(msg []byte) (s Sign, n int) {
	position, n := ParsePosition(msg)
	if n == 0 {
		return s, 0
	}
	id, m := word(msg[n:])
	if m == 0 {
		return s, 0
	}
	n += m
	sent, m := binary.Uvarint(msg[n:])
	if m <= 0 {
		return s, 0
	}
	return Sign{Position: position, RequestID: id, Sent: sent}, n + m
}

// appendWord adds a length as an uvarint and the text.
func appendWord(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// word reads what appendWord wrote; n is 0 when it is not there.
func word(msg []byte) (text string, n int) {
	size, n := binary.Uvarint(msg)
	if n <= 0 || size > uint64(len(msg)-n) {
		return "", 0
	}
	end := n + int(size)
	return string(msg[n:end]), end
}

// What an ingress says of one request, before the number of the first frame that it lacks, if any.
const (
	heardUnwanted = 'u'
	heardLacks    = 'l'
)

// AppendHeard adds what an ingress says to a report to dst.
func AppendHeard(dst []byte, list ...Heard) []byte {
	for _, h := range list {
		if h.Lacks {
			dst = binary.AppendUvarint(append(dst, heardLacks), h.From)
		} else {
			dst = append(dst, heardUnwanted)
		}
		dst = appendWord(dst, h.RequestID)
	}
	return dst
}

// ParseHeard reads what AppendHeard wrote. What can't be read ends the list: the worker reports again.
func ParseHeard(msg []byte) (list []Heard) {
	for len(msg) > 0 {
		h, n := Heard{Unwanted: msg[0] == heardUnwanted, Lacks: msg[0] == heardLacks}, 1
		if h.Fine() {
			break
		}
		if h.Lacks {
			from, m := binary.Uvarint(msg[n:])
			if m <= 0 {
				break
			}
			h.From, n = from, n+m
		}
		id, m := word(msg[n:])
		if m == 0 {
			break
		}
		h.RequestID, msg = id, msg[n+m:]
		list = append(list, h)
	}
	return list
}
