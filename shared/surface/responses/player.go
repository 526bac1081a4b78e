package responses

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Values of the status of a response.
const (
	statusInProgress = "in_progress"
	statusFailed     = "failed"
	statusCancelled  = "cancelled"
	statusIncomplete = "incomplete" // of an item, too
)

// InProgress gives a queued response as it is once somebody works on it.
func InProgress(queued []byte) []byte { return setStatus(queued, statusInProgress) }

// Player makes a response and its events of a recorded answer. The same recording gives the same events to everybody, also where their end has to
// be made up because the answer has none: it was cancelled, refused, or lost its worker. It is not safe for concurrent use.
type Player struct {
	response []byte // as the last event that has it says
	next     int    // number of the next event
	whole    bool   // the last event has come
	output   output
	told     func(number int, event []byte) // gets the events; nil = they are not wanted

	rest   []byte // of a line that is not complete
	data   []byte // of an event that is not
	status int    // of the answer
	body   []byte // of one that is an error
}

// NewPlayer begins with a queued response, which is the first event. told gets each event with its number and may not keep it; it may be nil.
func NewPlayer(queued []byte, told func(number int, event []byte)) *Player {
	p := &Player{response: queued, told: told}
	p.tell("response.created", queued)
	return p
}

// Take takes in the frames of one piece of the recording. An error means that they are no frames.
func (p *Player) Take(frames []byte) error {
	for f, err := range contract.Frames(frames) {
		if err != nil {
			return fmt.Errorf("reading a recorded answer: %w", err)
		}
		switch f.Kind {
		case contract.FrameHead:
			head, err := contract.ParseHead(f.Payload)
			if err != nil {
				return fmt.Errorf("reading a recorded answer: %w", err)
			}
			p.status = head.Status
		case contract.FrameData:
			p.takeData(f.Payload)
		case contract.FrameEnd:
			end, err := contract.ParseEnd(f.Payload)
			if err != nil {
				return fmt.Errorf("reading a recorded answer: %w", err)
			}
			p.end(end)
		}
	}
	return nil
}

// Next is the number that the next event will have.
func (p *Player) Next() int { return p.next }

// Response gives the response as it is now.
func (p *Player) Response() []byte { return p.response }

// takeData takes a piece of the body, which may begin and end anywhere.
func (p *Player) takeData(data []byte) {
	if p.status >= http.StatusBadRequest {
		p.body = append(p.body, data...)
		return
	}
	for {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			p.rest = append(p.rest, data...)
			return
		}
		line := data[:i]
		if len(p.rest) > 0 {
			p.rest = append(p.rest, line...)
			line = p.rest
		}
		p.takeLine(bytes.TrimSuffix(line, []byte{'\r'}))
		p.rest, data = p.rest[:0], data[i+1:]
	}
}

func (p *Player) takeLine(line []byte) {
	if value, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(p.data) > 0 {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, bytes.TrimPrefix(value, []byte{' '})...)
	}
	if len(line) == 0 && len(p.data) > 0 {
		p.takeEvent(p.data)
		p.data = p.data[:0]
	}
}

// takeEvent takes an event. One that repeats what has been told, such as the first one, is left out.
func (p *Player) takeEvent(data []byte) {
	if !rawjson.Valid(data) || data[0] != '{' {
		return
	}
	number, err := strconv.Atoi(string(rawjson.Get(data, "sequence_number")))
	if err != nil || p.whole {
		return
	}
	kind := rawjson.Text(rawjson.Get(data, "type"))
	if response := rawjson.Get(data, "response"); len(response) > 0 && response[0] == '{' {
		p.response = bytes.Clone(response)
	}
	switch kind {
	case "response.completed", "response.failed", "response.incomplete":
		p.whole = true
	default:
		p.output.take(kind, data)
	}
	if number < p.next {
		return
	}
	p.next = number + 1
	if p.told != nil {
		p.told(number, openai.AppendData(append(append([]byte("event: "), kind...), '\n'), data))
	}
}

// tell tells an event of the player's own.
func (p *Player) tell(kind string, response []byte) {
	number := p.next
	p.next++
	if p.told == nil {
		return
	}
	event := append(append([]byte("event: "), kind...), "\ndata: {\"type\":\""...)
	event = strconv.AppendInt(append(append(event, kind...), `","sequence_number":`...), int64(number), 10)
	event = append(append(event, `,"response":`...), response...)
	p.told(number, append(event, "}\n\n"...))
}

// end ends the response. Where the answer did not, it says why.
func (p *Player) end(e contract.End) {
	if p.whole {
		return
	}
	p.whole = true
	status := statusFailed
	if e.Outcome == contract.OutcomeCancelled {
		status = statusCancelled
	}
	r := setStatus(p.response, status)
	r = rawjson.AppendSet(nil, r, "output", p.output.json())
	if status == statusFailed {
		code, message := p.cause(e)
		problem := rawjson.AppendString([]byte(`{"code":`), code)
		problem = append(rawjson.AppendString(append(problem, `,"message":`...), message), '}')
		r = rawjson.AppendSet(nil, r, "error", problem)
	}
	p.response = r
	p.tell("response."+status, r)
}

// cause says why a response failed. The codes are OpenAI's.
func (p *Player) cause(e contract.End) (code, message string) {
	code = "server_error"
	if p.status == http.StatusTooManyRequests {
		code = "rate_limit_exceeded"
	}
	if message = rawjson.Text(rawjson.Get(rawjson.Get(p.body, "error"), "message")); message != "" {
		return code, message
	}
	switch e.Reason {
	case contract.ReasonLifetime:
		return code, "The response took longer than the gateway allows"
	case contract.ReasonWorkerLost:
		return code, "The worker of the response died while it was answering"
	}
	return code, "The response could not be finished"
}

func setStatus(object []byte, status string) []byte {
	return rawjson.AppendSet(nil, object, "status", rawjson.AppendString(nil, status))
}
