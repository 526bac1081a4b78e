package openai

// valueScan follows a JSON object or array that comes in lines, just far enough to know where it ends. The zero value is at its beginning.
type valueScan struct {
	depth    int
	begun    bool
	inString bool
	escaped  bool
	other    bool // it is something else, or something follows it
}

// feed takes the next line.
func (v *valueScan) feed(line []byte) {
	for _, c := range line {
		switch {
		case v.other:
			return
		case v.escaped:
			v.escaped = false
		case v.inString:
			v.escaped, v.inString = c == '\\', c != '"'
		default:
			v.outside(c)
		}
	}
}

// outside takes a character that is not in a string.
func (v *valueScan) outside(c byte) {
	switch {
	case c == ' ' || c == '\t':
	case c == '{' || c == '[':
		v.other = v.begun && v.depth == 0
		v.begun = true
		v.depth++
	case v.depth == 0:
		v.other = true
	case c == '}' || c == ']':
		v.depth--
	case c == '"':
		v.inString = true
	}
}

// complete says whether the value has ended, and nothing follows it.
func (v *valueScan) complete() bool { return v.begun && v.depth == 0 && !v.other }
