package faultbus

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

var errProtocol = errors.New("not the NATS protocol")

// relay copies what a client sends to its server, line by line; a message is written as often as fate says. It returns when either side is
// gone or sends what is no NATS protocol.
func relay(server io.Writer, client io.Reader, fate func(subject string) int) error {
	in := bufio.NewReaderSize(client, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		subject, size, published, err := parse(line)
		if err != nil {
			return err
		}
		times := 1
		if published {
			times = fate(subject)
			body := make([]byte, size+len("\r\n"))
			if _, err := io.ReadFull(in, body); err != nil {
				return io.ErrUnexpectedEOF // the client went away in the middle of a message
			}
			line = append(line, body...)
		}
		for range times {
			if _, err := server.Write(line); err != nil {
				return err
			}
		}
	}
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
