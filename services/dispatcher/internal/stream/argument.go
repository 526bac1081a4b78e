package stream

import "hydrallm/shared/openai/rawjson"

// arguments follows the JSON text that the argument pieces of a call make up, just far enough to know where it ends.
type arguments struct {
	started  bool // something but white space came
	complete bool // an object, array or string has ended
	inString bool
	escaped  bool
	depth    int
}

// feed takes the inner part of the next JSON string of arguments.
func (a *arguments) feed(inner []byte) {
	for len(inner) > 0 {
		unit, n := rawjson.Unit(inner)
		inner = inner[n:]
		switch {
		case a.escaped:
			a.escaped = false
		case a.inString:
			switch unit {
			case '\\':
				a.escaped = true
			case '"':
				a.inString = false
				a.complete = a.depth == 0
			}
		default:
			a.outside(unit)
		}
	}
}

func (a *arguments) outside(unit uint16) {
	switch unit {
	case ' ', '\t', '\n', '\r':
		return
	case '"':
		a.inString = true
	case '{', '[':
		a.depth++
	case '}', ']':
		a.depth--
		a.complete = a.depth == 0
	}
	a.started = true
}
