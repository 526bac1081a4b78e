package contract

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// Sign is a sign of life about a request: a worker has it, or, with a delivery of 0, the stage before has finished and it waits for a worker of
// this one.
type Sign struct {
	Position
	RequestID string
}

// AppendSigns adds an encoded report of a worker to dst: its id, and the requests that it speaks of.
func AppendSigns(dst []byte, worker string, signs ...Sign) []byte {
	dst = appendWord(dst, worker)
	for _, s := range signs {
		dst = appendWord(s.Append(dst), s.RequestID)
	}
	return dst
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
	return Sign{Position: position, RequestID: id}, n + m
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

// AppendIDs adds a list of request ids to dst, which hold no line break.
func AppendIDs(dst []byte, ids []string) []byte { return append(dst, strings.Join(ids, "\n")...) }

// IDs reads such a list.
func IDs(msg []byte) []string {
	if len(msg) == 0 {
		return nil
	}
	return strings.Split(string(msg), "\n")
}
