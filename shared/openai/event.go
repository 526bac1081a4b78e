package openai

import "bytes"

// Done is the event that ends a chat stream.
const Done = "data: [DONE]\n\n"

// IsDone says whether the data of an event is the end mark of a chat stream.
func IsDone(data []byte) bool {
	return len(data) >= len(doneMark) && bytes.HasPrefix(bytes.TrimSpace(data), doneMark)
}

var doneMark = []byte("[DONE]")

// AppendData appends an unnamed event whose data is a JSON text. Line ends in it, which in JSON are only white space, become spaces, so
// that the event has one data line (SSE-08).
func AppendData(dst, json []byte) []byte {
	dst = append(dst, "data: "...)
	dst = appendLine(dst, json)
	return append(dst, "\n\n"...)
}

// appendLine appends text with line ends replaced by spaces.
func appendLine(dst, text []byte) []byte {
	from := len(dst)
	dst = append(dst, text...)
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return dst
	}
	for i, c := range dst[from:] {
		if c == '\n' || c == '\r' {
			dst[from+i] = ' '
		}
	}
	return dst
}
