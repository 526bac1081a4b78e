package execute

import (
	"bytes"
	"errors"
	"io"
	"strings"

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

// sniff tells the kind of a 2xx body and gives the whole of it back. It waits for the first bytes unless the label says that events will
// come, maybe late: servers label events as JSON, JSON as text, and pages as anything.
func sniff(resp *upstream.Response) (io.Reader, bodyKind, error) {
	if strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream") {
		return resp.Body, bodyEvents, nil
	}
	head, err := readHead(resp.Body)
	if err != nil {
		return nil, bodyOther, err
	}
	body := io.MultiReader(bytes.NewReader(head), resp.Body)
	text := bytes.TrimLeft(head, " \t\r\n\ufeff")
	switch {
	case len(text) == 0:
		return body, bodyOther, nil
	case text[0] == '{' || text[0] == '[':
		return body, bodyJSON, nil
	case text[0] == ':' || bytes.HasPrefix(text, []byte("data:")) || bytes.HasPrefix(text, []byte("event:")) || bytes.HasPrefix(text, []byte("id:")):
		return body, bodyEvents, nil
	}
	return body, bodyOther, nil
}

// enough is how many bytes tell a kind from another.
const enough = len("event:")

// readHead takes the first bytes of a body, until there is enough that is not white space.
func readHead(r io.Reader) ([]byte, error) {
	head := make([]byte, 0, sniffBytes)
	for len(head) < cap(head) && len(bytes.TrimLeft(head, " \t\r\n\ufeff")) < enough {
		n, err := r.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return head, nil
}
