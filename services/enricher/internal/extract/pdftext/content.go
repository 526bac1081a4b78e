package pdftext

import (
	"bytes"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"
)

// reader writes the text of pages as their operators show it.
type reader struct {
	*file
	fonts map[any]*font
	out   strings.Builder
	ops   int

	font     *font
	size     float64
	leading  float64
	line     [6]float64 // the matrix of the line
	startX   float64    // where the last text was begun
	x, y     float64    // where it ended, in the units of the page
	begun    bool
	trailing rune
}

const (
	maxOps   = 5_000_000
	maxForms = 6 // forms within forms
)

func (r *reader) page(page dict) {
	if r.out.Len() > 0 {
		r.out.WriteString("\n\n")
	}
	r.begun, r.trailing = false, 0
	var content []byte
	switch c := r.get(page["Contents"]).(type) {
	case []any:
		for _, part := range c {
			_, data := r.stream(part)
			content = append(append(content, data...), '\n')
		}
	default:
		_, content = r.stream(page["Contents"])
	}
	r.run(content, r.dict(page["Resources"]), 0)
}

func (r *reader) run(content []byte, resources dict, depth int) {
	l := lexer{b: content}
	var args []any
	for r.ops < maxOps && r.out.Len() < maxText {
		v, ok := l.next()
		if !ok {
			return
		}
		r.ops++
		op, isOp := v.(keyword)
		if !isOp {
			if len(args) < 64 {
				args = append(args, v)
			}
			continue
		}
		if op == "BI" { // a picture within the text: what follows is its bytes
			if end := bytes.Index(content[l.at:], []byte("EI")); end >= 0 {
				l.at += end + 2
			}
		}
		if op == "Do" && depth < maxForms && len(args) == 1 {
			n, _ := args[0].(name)
			r.form(r.dict(resources["XObject"])[string(n)], resources, depth)
		}
		r.operate(string(op), args, resources)
		args = args[:0]
	}
}

func (r *reader) form(v any, resources dict, depth int) {
	head := r.dict(v)
	if head["Subtype"] != name("Form") {
		return
	}
	_, data := r.stream(v)
	if own := r.dict(head["Resources"]); own != nil {
		resources = own
	}
	r.run(data, resources, depth+1)
}

func (r *reader) operate(op string, args []any, resources dict) {
	num := func(i int) float64 {
		if i >= len(args) {
			return 0
		}
		f, _ := args[i].(float64)
		return f
	}
	switch op {
	case "BT":
		r.line = [6]float64{1, 0, 0, 1, 0, 0}
	case "Tf":
		if len(args) > 0 {
			n, _ := args[0].(name)
			v := r.dict(resources["Font"])[string(n)]
			key, isRef := v.(ref)
			if isRef && r.fonts[key] != nil {
				r.font = r.fonts[key]
			} else if r.font = r.file.font(v); isRef {
				r.fonts[key] = r.font
			}
		}
		r.size = num(1)
	case "TL":
		r.leading = num(0)
	case "Td":
		r.move(num(0), num(1))
	case "TD":
		r.leading = -num(1)
		r.move(num(0), num(1))
	case "T*":
		r.move(0, -r.leading)
	case "Tm":
		for i := range r.line {
			r.line[i] = num(i)
		}
	case "Tj", "'", "\"":
		if op != "Tj" {
			r.move(0, -r.leading)
		}
		if len(args) > 0 {
			s, _ := args[len(args)-1].(string)
			r.show(s)
		}
	case "TJ":
		if len(args) > 0 {
			list, _ := args[0].([]any)
			for _, one := range list {
				switch one := one.(type) {
				case string:
					r.show(one)
				case float64:
					if one < -200 && r.begun && r.trailing != ' ' {
						r.write(" ")
					}
				}
			}
		}
	}
}

func (r *reader) move(x, y float64) {
	m := &r.line
	m[4] += x*m[0] + y*m[2]
	m[5] += x*m[1] + y*m[3]
}

// show writes a string where it stands: on a new line if it is higher or lower than the text before, behind a space if it is farther to the right.
func (r *reader) show(s string) {
	text := r.font.decode(s)
	if text == "" {
		return
	}
	em := math.Abs(r.size) * math.Max(math.Abs(r.line[3]), math.Abs(r.line[0]))
	if em == 0 || math.IsNaN(em) || math.IsInf(em, 0) {
		em = 1
	}
	if r.begun && (r.line[4] != r.startX || r.line[5] != r.y) {
		switch down := math.Abs(r.y - r.line[5]); {
		case down > 1.9*em:
			r.write("\n\n")
		case down > 0.4*em:
			r.write("\n")
		case r.line[4]-r.x > 0.3*em && r.trailing != ' ':
			r.write(" ")
		}
	}
	if r.line[4] != r.startX || r.line[5] != r.y || !r.begun {
		r.startX, r.x = r.line[4], r.line[4]
	}
	r.y, r.begun = r.line[5], true
	for _, c := range text {
		if c > 0x1100 {
			r.x += em
		} else {
			r.x += em / 2
		}
	}
	r.write(text)
}

func (r *reader) write(text string) {
	r.out.WriteString(text)
	if last, _ := utf8.DecodeLastRuneInString(text); unicode.IsSpace(last) {
		r.trailing = ' '
	} else {
		r.trailing = last
	}
}
