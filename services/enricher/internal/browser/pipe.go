package browser

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/go-rod/rod/lib/cdp"
)

// maxMessage is the most that Chromium may say at once, in bytes: what is read of a page is a fraction of it.
const maxMessage = 64 << 20

var errMessage = errors.New("the browser sent something that is no message")

// pipe carries the DevTools protocol over two pipes, where each message ends with a zero byte. Unlike a port it can't be reached by a page or by
// another user of the machine.
type pipe struct {
	in  *bufio.Reader
	out *os.File
	mu  sync.Mutex // held while a message is written
}

var _ cdp.WebSocketable = (*pipe)(nil)

// Send writes one message.
func (p *pipe) Send(message []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.out.Write(append(message, 0)); err != nil {
		return err
	}
	return nil
}

// Read gives the next message. It is JSON for sure: the client panics about anything else.
func (p *pipe) Read() ([]byte, error) {
	var message []byte
	for {
		part, err := p.in.ReadSlice(0)
		if len(message)+len(part) > maxMessage {
			return nil, errMessage
		}
		message = append(message, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	message = bytes.TrimSuffix(message, []byte{0})
	if !json.Valid(message) {
		return nil, errMessage
	}
	return message, nil
}
