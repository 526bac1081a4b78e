package fetch

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// isText says whether a type of content can be read as text. A PDF counts as one.
func isText(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil && kind == "" { // a label that is nothing but odd in its parameters still has a type
		kind, _, _ = strings.Cut(contentType, ";")
		kind = strings.ToLower(strings.TrimSpace(kind))
	}
	switch {
	case kind == "text/event-stream": // has no end
		return false
	case strings.HasPrefix(kind, "text/"), kind == "application/pdf", kind == "application/json", kind == "application/xml":
		return true
	}
	return strings.HasPrefix(kind, "application/") && (strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml"))
}

// readBody reads and unpacks the body of an answer. Both what comes and what becomes of it is at most MaxBody. idle is called when nothing came
// for silence, and has to end the reading.
func readBody(answer *http.Response, silence time.Duration, idle func()) ([]byte, error) {
	if answer.ContentLength > MaxBody {
		return nil, &Error{Kind: TooLarge}
	}
	timer := time.AfterFunc(silence, idle)
	defer timer.Stop()
	// The limit of what comes holds for what unpacks to nothing, too.
	packed := &limited{r: &watched{answer.Body, timer, silence}, left: MaxBody}
	plain, err := unpack(answer.Header, packed)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	if answer.ContentLength > 0 {
		body.Grow(int(answer.ContentLength) + bytes.MinRead)
	}
	if _, err := body.ReadFrom(&limited{r: plain, left: MaxBody}); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// unpack undoes the one coding of a body. More than one, or another, was not asked for.
func unpack(header http.Header, packed io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(strings.Join(header.Values("Content-Encoding"), ","))) {
	case "", "identity":
		return packed, nil
	case "gzip", "x-gzip":
		plain, err := gzip.NewReader(packed)
		if errors.Is(err, io.EOF) { // nothing at all is an empty page
			return packed, nil
		}
		return plain, err
	case "deflate": // by RFC 9110 in the form of zlib, by some servers bare
		peek := bufio.NewReader(packed)
		if head, err := peek.Peek(2); err == nil && head[0]&0x0f == 8 && (uint(head[0])<<8|uint(head[1]))%31 == 0 {
			return zlib.NewReader(peek)
		}
		return flate.NewReader(peek), nil
	default:
		return nil, &Error{Kind: Type}
	}
}

// limited reads at most left bytes, and fails when there are more.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, &Error{Kind: TooLarge}
	}
	p = p[:min(len(p), l.left+1)]
	n, err := l.r.Read(p)
	if l.left -= n; l.left < 0 {
		return 0, &Error{Kind: TooLarge}
	}
	return n, err
}

// watched puts the end off with each piece that comes.
type watched struct {
	r       io.Reader
	timer   *time.Timer
	silence time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	w.timer.Reset(w.silence)
	return n, err
}
