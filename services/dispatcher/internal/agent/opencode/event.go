package opencode

import (
	"cmp"
	"time"

	"github.com/tidwall/gjson"
)

// kind is what an event is about.
type kind int

const (
	other kind = iota
	connected
	ofMessage // a message began or changed
	ofPart    // a part began or changed: its whole text
	ofDelta   // a part grew: what came
	nowIdle   // the turn is over
	repeating // a call of the provider failed, and will be repeated
	failed    // the turn failed
	asking    // OpenCode wants a permission, or an answer of its user
)

// event is one event, as far as it matters here.
type event struct {
	kind    kind
	session string // "" when it names none
	message info
	part    part
	delta   string
	failure failure
	refusal refusal
}

// info is what is said of a message.
type info struct {
	id       string
	own      bool // of the assistant, and no summary of the conversation
	model    model
	created  int64 // Unix seconds
	finish   string
	usage    usage
	error    gjson.Result
	hasError bool
}

// part is a piece of a message.
type part struct {
	id, message string
	kind        string
	text        string
	hidden      bool // not part of what the model said
}

// readEvent reads the data of an event.
func readEvent(data []byte) event {
	if !gjson.ValidBytes(data) {
		return event{}
	}
	root := gjson.ParseBytes(data)
	p := root.Get("properties")
	e := event{session: p.Get("sessionID").Str}
	switch name := root.Get("type").Str; name {
	case "server.connected":
		e.kind = connected
	case "message.updated":
		e.kind, e.message = ofMessage, readInfo(p.Get("info"))
		e.session = cmp.Or(p.Get("info.sessionID").Str, e.session)
	case "message.part.updated":
		e.kind, e.part = ofPart, readPart(p.Get("part"))
		e.session = cmp.Or(p.Get("part.sessionID").Str, e.session)
	case "message.part.delta":
		if p.Get("field").Str == "text" {
			e.kind, e.delta = ofDelta, p.Get("delta").Str
			e.part = part{id: p.Get("partID").Str, message: p.Get("messageID").Str}
		}
	case "session.idle":
		e.kind = nowIdle
	case "session.status":
		e.status(p.Get("status"))
	case "session.error":
		e.kind, e.failure = failed, readFailure(p.Get("error"))
	case "permission.asked", "permission.updated", "question.asked":
		e.kind, e.refusal = asking, refusal{p.Get("id").Str, name == "question.asked"}
	}
	return e
}

func (e *event) status(s gjson.Result) {
	switch s.Get("type").Str {
	case "idle":
		e.kind = nowIdle
	case "retry":
		e.kind, e.failure = repeating, repeated(s.Get("message").String(), time.UnixMilli(s.Get("next").Int()))
	}
}

func readInfo(v gjson.Result) info {
	i := info{
		id:      v.Get("id").Str,
		own:     v.Get("role").Str == "assistant" && !v.Get("summary").Bool(),
		model:   model{v.Get("providerID").Str, v.Get("modelID").Str},
		created: v.Get("time.created").Int() / 1000,
		finish:  v.Get("finish").Str,
		usage:   readUsage(v.Get("tokens")),
		error:   v.Get("error"),
	}
	i.hasError = i.error.IsObject()
	return i
}

func readPart(v gjson.Result) part {
	return part{
		id: v.Get("id").Str, message: v.Get("messageID").Str, kind: v.Get("type").Str, text: v.Get("text").Str,
		hidden: v.Get("synthetic").Bool() || v.Get("ignored").Bool(),
	}
}

// usage is what a message cost, in tokens. Here the parts do not contain each other.
type usage struct{ input, output, reasoning, cacheRead, cacheWrite int64 }

func readUsage(v gjson.Result) usage {
	return usage{
		input: count(v.Get("input")), output: count(v.Get("output")), reasoning: count(v.Get("reasoning")),
		cacheRead: count(v.Get("cache.read")), cacheWrite: count(v.Get("cache.write")),
	}
}

// maxCount is more tokens than any message costs.
const maxCount = 1 << 40

func count(v gjson.Result) int64 { return min(max(v.Int(), 0), maxCount) }
