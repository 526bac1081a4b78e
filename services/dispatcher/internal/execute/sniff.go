package execute

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime"

	"hydrallm/services/dispatcher/internal/upstream"
)

// bodyKind is what an upstream sends, judged by its label and, where that says little, by its first bytes.
type bodyKind int

const (
	bodyOther bodyKind = iota
	bodyEvents
	bodyJSON
)

const sniffBytes = 512

// sniff tells the kind of a 2xx body. It waits for the first bytes unless the label says that events will come, maybe late: servers label
// events as JSON, JSON as text, and pages as anything.
func sniff(resp *upstream.Response) (*bufio.Reader, bodyKind, error) {
	r := bufio.NewReaderSize(resp.Body, 16<<10)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an unreadable label is none
	if media == "text/event-stream" {
		return r, bodyEvents, nil
	}
	head, err := peekText(r)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, bodyOther, err
	}
	switch {
	case len(head) == 0:
		return r, bodyOther, nil
	case head[0] == '{' || head[0] == '[':
		return r, bodyJSON, nil
	case head[0] == ':' || bytes.HasPrefix(head, []byte("data:")) || bytes.HasPrefix(head, []byte("event:")) || bytes.HasPrefix(head, []byte("id:")):
		return r, bodyEvents, nil
	}
	return r, bodyOther, nil
}

// peekText gives the first bytes that are not white space, without taking them.
func peekText(r *bufio.Reader) ([]byte, error) {
	for n := 1; n <= sniffBytes; n++ {
		head, err := r.Peek(n)
		if text := bytes.TrimLeft(head, " \t\r\n\ufeff"); len(text) > 0 {
			head, _ = r.Peek(r.Buffered())
			return bytes.TrimLeft(head, " \t\r\n\ufeff"), nil
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, nil
}
