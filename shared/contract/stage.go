package contract

import (
	"cmp"
	"encoding/binary"
	"slices"

	"hydrallm/shared/openai/rawjson"
)

// Stage is a station on the way of a request. Its name is the last token of the subject on which the request waits for it.
type Stage string

// The stages in the order of R-001.
const (
	StageSession  Stage = "session"  // session-writer: loads the history, saves the user's turn, assembles the prompt
	StageReceived Stage = "received" // analyzer: decides which model serves the request
	StageAnalyzed Stage = "analyzed" // enricher: adds text from the web
	StageEnriched Stage = "enriched" // dispatcher: calls the upstreams
)

var stages = [...]Stage{StageSession, StageReceived, StageAnalyzed, StageEnriched}

// rank is the place of a stage in the order of R-001, or -1.
func (s Stage) rank() int { return slices.Index(stages[:], s) }

// Slip is the routing slip of a request: the stages that still have something to do with it, in the order of R-001. The first is the one for
// which the request waits, or which has it now; the last is always the dispatcher. The ingress writes it, and nobody adds to it.
type Slip []Stage

// Here is the stage that the request waits for, or that has it now; "" for an empty slip.
func (s Slip) Here() Stage {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}

// Has says whether a stage is still to come, or has the request now.
func (s Slip) Has(stage Stage) bool { return slices.Contains(s, stage) }

// Skip gives the slip without a stage that has nothing to do. The stage that has the request now and the dispatcher stay.
func (s Slip) Skip(stage Stage) Slip {
	if i := slices.Index(s, stage); i > 0 && i < len(s)-1 {
		return slices.Concat(s[:i], s[i+1:])
	}
	return s
}

// valid says whether the stages are known, each once, in the order of R-001, up to the dispatcher.
func (s Slip) valid() bool {
	before := -1
	for _, stage := range s {
		rank := stage.rank()
		if rank <= before {
			return false
		}
		before = rank
	}
	return before == len(stages)-1
}

func (s Slip) appendJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i, stage := range s {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(dst, string(stage))
	}
	return append(dst, ']')
}

// read takes a JSON array of names.
func (s *Slip) read(text []byte) bool {
	if text[0] != '[' {
		return false
	}
	*s = make(Slip, 0, len(stages))
	for span := range rawjson.Elements(text) {
		*s = append(*s, stageNamed(span.Of(text)))
	}
	return s.valid()
}

// stageNamed is the stage with a name, given as JSON, or "".
func stageNamed(raw []byte) Stage {
	for _, s := range stages {
		if rawjson.Is(raw, string(s)) {
			return s
		}
	}
	return ""
}

// Position tells how far a request has come: the stage, and the delivery count of its work message there. It orders what several workers say of
// one request.
type Position struct {
	Stage    Stage
	Delivery uint64 // from 1; 0 = the request waits there for its first worker
}

// Compare is negative when p is before q, positive when it is behind, else 0.
func (p Position) Compare(q Position) int {
	return cmp.Or(cmp.Compare(p.Stage.rank(), q.Stage.rank()), cmp.Compare(p.Delivery, q.Delivery))
}

// Append adds the encoded position to dst: the place of its stage in the order of R-001 as a byte, the delivery count as an uvarint.
func (p Position) Append(dst []byte) []byte {
	return binary.AppendUvarint(append(dst, byte(p.Stage.rank())), p.Delivery)
}

// ParsePosition reads a position from the front of msg; n is its length, 0 when there is none.
func ParsePosition(msg []byte) (p Position, n int) {
	if len(msg) == 0 || int(msg[0]) >= len(stages) {
		return p, 0
	}
	p.Stage = stages[msg[0]]
	if p.Delivery, n = binary.Uvarint(msg[1:]); n <= 0 {
		return Position{}, 0
	}
	return p, 1 + n
}
