package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

const (
	maxPiece      = 32 << 10        // what a client must take within writePause
	deadlineSlack = 5 * time.Second // a deadline that is younger is not renewed
)

// deadlineWriter writes to a client for as long as it takes something now and then.
type deadlineWriter struct {
	conn  net.Conn
	dated time.Time // of the deadline
}

// write passes p on in pieces.
func (pw *deadlineWriter) write(w io.Writer, p []byte) error {
	for len(p) > 0 {
		piece := p[:min(len(p), maxPiece)]
		if now := time.Now(); now.Sub(pw.dated) > deadlineSlack {
			pw.dated = now
			if err := pw.conn.SetWriteDeadline(now.Add(writePause)); err != nil {
				return fmt.Errorf("setting a deadline: %w", err)
			}
		}
		if _, err := w.Write(piece); err != nil {
			return fmt.Errorf("writing to a client: %w", err)
		}
		p = p[len(piece):]
	}
	return nil
}

// deadlineBody is a whole body for fasthttp, written with a deadlineWriter.
type deadlineBody struct {
	parts  [][]byte
	writer deadlineWriter
}

// WriteTo writes the body and lets go of each part that the client has.
func (b *deadlineBody) WriteTo(w io.Writer) (n int64, err error) {
	for i, p := range b.parts {
		if err := b.writer.write(w, p); err != nil {
			return n, err
		}
		n += int64(len(p))
		b.parts[i] = nil
	}
	return n, nil
}

// SupportsBodyWriteTo makes fasthttp use WriteTo.
func (b *deadlineBody) SupportsBodyWriteTo() bool { return true }

// Read is never used, since fasthttp uses WriteTo.
func (b *deadlineBody) Read([]byte) (int, error) { return 0, errors.ErrUnsupported }
