package markdown

import (
	"bytes"
	"html"
)

// Bounds of a text that is converted. What models write stays far below them; beyond, the converter needs minutes or gigabytes.
const (
	maxNesting = 64      // quotes and lists that one line begins
	maxCells   = 200_000 // of a table, with those that the converter adds to short rows
	maxWork    = 1 << 27 // the sum over all paragraphs of their characters with a meaning, times their bytes, which is what the converter looks at
)

// costly says whether converting a text is out of proportion to it. Nothing that is converted as a whole goes on behind an empty line.
func costly(source []byte) bool {
	work, marks, size, rows, columns := 0, 0, 0, 0, 0
	for line := range bytes.Lines(source) {
		if len(bytes.Trim(line, " \t\r\n")) == 0 {
			marks, size, rows, columns = 0, 0, 0, 0
			continue
		}
		if nesting(line) > maxNesting {
			return true
		}
		marked := 0
		for _, c := range line {
			switch c {
			case '[', ']', '<', '`', '*', '_', '~':
				marked++
			}
		}
		work += marked*size + marks*len(line) + marked*len(line)
		marks, size = marks+marked, size+len(line)
		rows, columns = rows+1, max(columns, bytes.Count(line, []byte("|"))+1)
		if work > maxWork || columns > 2 && rows*columns > maxCells {
			return true
		}
	}
	return false
}

// nesting counts the quotes and lists at the beginning of a line.
func nesting(line []byte) (n int) {
	for i, c := range line {
		switch c {
		case ' ', '\t', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		case '>':
			n++
		case '-', '+', '*', '.', ')':
			if i+1 == len(line) || bytes.IndexByte([]byte(" \t\r\n"), line[i+1]) >= 0 {
				n++
			}
		default:
			return n
		}
	}
	return n
}

// plain gives a text as it is.
func plain(source []byte) []byte {
	return []byte("<pre><code>" + html.EscapeString(string(bytes.ToValidUTF8(source, []byte("\uFFFD")))) + "</code></pre>\n")
}
