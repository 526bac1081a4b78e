package rawjson

// containerEnd is valueEnd for an object or an array. It does not call itself, so that deep nesting costs a bit a level and no stack.
func containerEnd(b []byte, i, depth int) int {
	var open nest
	for {
		// A value of the innermost container is ahead, or the outermost container.
		switch {
		case i >= len(b):
			return ^i
		case b[i] != '{' && b[i] != '[':
			if i = valueEnd(b, i, 0); i < 0 {
				return i
			}
		case open.depth == depth:
			return tooDeep + i
		default:
			object := b[i] == '{'
			i = skipSpace(b, i+1)
			switch {
			case i < len(b) && object && b[i] == '}', i < len(b) && !object && b[i] == ']':
				i++
			case object:
				open.push(1)
				if i = memberValue(b, i); i < 0 {
					return i
				}
				continue
			default:
				open.push(0)
				continue
			}
		}
		// A value has ended, and containers may end with it.
		more := false
		for !more {
			if open.depth == 0 {
				return i
			}
			if i < len(b) && b[i] <= ' ' {
				i = skipSpace(b, i)
			}
			switch object := open.object(); {
			case i >= len(b):
				return ^i
			case b[i] == ',':
				more = true
				if i = skipSpace(b, i+1); object {
					if i = memberValue(b, i); i < 0 {
						return i
					}
				}
			case object && b[i] == '}', !object && b[i] == ']':
				i++
				open.pop()
			default:
				return ^i
			}
		}
	}
}

// memberValue gives the index of the value of the member at i, or the complement of the position of an error.
func memberValue(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return ^i
	}
	if i = textEnd(b, i+1); i < 0 {
		return i
	}
	if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
		return ^i
	}
	return skipSpace(b, i+1)
}

// nest says of each open container whether it is an object.
type nest struct {
	depth int
	inner uint64   // a bit for each of the innermost, which is the lowest
	outer []uint64 // 64 containers each
}

const wordBits = 64

func (n *nest) push(bit uint64) {
	if n.depth > 0 && n.depth%wordBits == 0 {
		n.outer = append(n.outer, n.inner)
	}
	n.inner = n.inner<<1 | bit
	n.depth++
}

func (n *nest) pop() {
	n.depth--
	if last := len(n.outer) - 1; last >= 0 && n.depth%wordBits == 0 {
		n.inner, n.outer = n.outer[last], n.outer[:last]
		return
	}
	n.inner >>= 1
}

func (n *nest) object() bool { return n.inner&1 == 1 }
