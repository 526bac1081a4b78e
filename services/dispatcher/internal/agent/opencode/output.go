package opencode

import (
	"bytes"

	"github.com/tidwall/gjson"
)

// readOutput reads what the program printed: one JSON text a line, and maybe lines that are none. Of several failures the first
// says most.
func readOutput(output []byte, m model) (*transcript, *failure) {
	t := newTranscript("", m)
	var why *failure
	for line := range bytes.Lines(output) {
		if !gjson.ValidBytes(line) {
			continue
		}
		v := gjson.ParseBytes(line)
		t.id = "chatcmpl-" + v.Get("sessionID").Str
		switch v.Get("type").Str {
		case "text", "reasoning":
			t.grow(readPart(v.Get("part")))
		case "step_finish":
			step := v.Get("part")
			t.note(info{id: step.Get("id").Str, own: true, model: m, finish: step.Get("reason").Str, usage: readUsage(step.Get("tokens"))})
		case "error":
			f := readFailure(v.Get("error"))
			switch {
			case f.name == "MessageOutputLengthError":
				t.cutShort = true
			case why == nil:
				why = &f
			}
		}
	}
	return &t, why
}
