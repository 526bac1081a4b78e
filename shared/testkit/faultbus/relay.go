package faultbus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

var errProtocol = errors.New("not the NATS protocol")

// fate is what happens to a message.
type fate struct {
	times     int           // that it arrives
	late      time.Duration // it waits, and all behind it wait with it
	overtaken int           // messages that go before it; a flush never does
}

// item is a control line of a client, with the message that belongs to it.
type item struct {
	text      []byte
	fate      fate
	published bool
	err       error // the end of the client; it comes alone
}

// holdTime is how long a message is held back that nothing overtakes.
const holdTime = 50 * time.Millisecond

// relay copies what a client sends to its server, line by line; what becomes of a message is up to decide. It returns when either side is gone or sends what is no
// NATS protocol. The caller closes client then, which ends a goroutine that reads from it; wait waits for that.
func relay(server io.Writer, client io.Reader, decide func(subject string) fate) (wait func(), err error) {
	items, gone, read := make(chan item), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewReaderSize(client, 64<<10)
		for {
			i := next(in, decide)
			select {
			case items <- i:
			case <-gone:
				return
			}
			if i.err != nil {
				return
			}
		}
	}()
	defer close(gone)
	r := relaying{server: server}
	return func() { <-read }, r.run(items)
}

// next reads one item.
func next(in *bufio.Reader, decide func(subject string) fate) item {
	line, err := in.ReadBytes('\n')
	if err != nil {
		return item{err: err}
	}
	subject, size, published, err := parse(line)
	if err != nil || !published {
		return item{text: line, err: err, fate: fate{times: 1}}
	}
	body := make([]byte, size+len("\r\n"))
	if _, err := io.ReadFull(in, body); err != nil {
		return item{err: io.ErrUnexpectedEOF} // the client went away in the middle of a message
	}
	return item{text: append(line, body...), fate: decide(subject), published: true}
}

// relaying is the way to the server.
type relaying struct {
	server io.Writer
	held   []item // that others overtake
}

func (r *relaying) run(items <-chan item) error {
	for {
		var waited <-chan time.Time
		if len(r.held) > 0 {
			waited = time.After(holdTime)
		}
		select {
		case <-waited:
			if err := r.release(len(r.held)); err != nil {
				return err
			}
		case i := <-items:
			if i.err != nil {
				return errors.Join(i.err, r.release(len(r.held)))
			}
			if err := r.pass(i); err != nil {
				return err
			}
		}
	}
}

// pass sends an item on, or holds it back.
func (r *relaying) pass(i item) error {
	if !i.published { // a flush asks whether all before it have arrived
		if err := r.release(len(r.held)); err != nil {
			return err
		}
		return r.write(i)
	}
	if i.fate.late > 0 {
		<-time.After(i.fate.late)
	}
	if i.fate.overtaken > 0 {
		r.held = append(r.held, i)
		return nil
	}
	if err := r.write(i); err != nil {
		return err
	}
	due := 0
	for n := range r.held {
		if r.held[n].fate.overtaken--; r.held[n].fate.overtaken <= 0 {
			due = n + 1
		}
	}
	return r.release(due)
}

// release sends the first messages that are held back.
func (r *relaying) release(n int) error {
	for _, i := range r.held[:n] {
		if err := r.write(i); err != nil {
			return err
		}
	}
	r.held = r.held[n:]
	return nil
}

func (r *relaying) write(i item) error {
	for range i.fate.times {
		if _, err := r.server.Write(i.text); err != nil {
			return err
		}
	}
	return nil
}

// parse reads the control line of a client. size is that of headers and payload together.
func parse(line []byte) (subject string, size int, published bool, err error) {
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return "", 0, false, fmt.Errorf("%w: empty line", errProtocol)
	}
	op := string(bytes.ToUpper(fields[0]))
	if op != "PUB" && op != "HPUB" { // PUB subject [reply] size; HPUB subject [reply] header-size size
		return "", 0, false, nil
	}
	if len(fields) < 3 || len(fields) > 5 {
		return "", 0, false, fmt.Errorf("%w: %q", errProtocol, line)
	}
	size, err = strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil || size < 0 || size > 64<<20 {
		return "", 0, false, fmt.Errorf("%w: %q", errProtocol, line)
	}
	return string(fields[1]), size, true, nil
}
