// Package upload reads the body of a request within limits of size and time, and undoes its compression.
package upload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// Limits of time. A client that sends less than minProgress in bodyPause is dropped; one that makes progress may take as long as it needs.
const (
	bodyPause   = 15 * time.Second
	minProgress = 4 << 10
)

// Read gives the body of the request, decompressed and without a byte order mark, at most limit bytes. The caller hands it to Release when nothing refers to it any more.
// The error is a *fault.Fault; the rest of the body may then be unread.
func Read(ctx *fasthttp.RequestCtx, limit int) ([]byte, error) {
	// Fields that come twice are one list (RFC 9110, section 5.3), and no list of encodings is supported.
	encoding := bytes.Join(ctx.Request.Header.PeekAll(fasthttp.HeaderContentEncoding), []byte(","))
	encoding = bytes.ToLower(bytes.TrimSpace(encoding))
	unpack, ok := decoders[string(encoding)]
	if !ok {
		return nil, fault.New(fault.BadEncoding, "The content encoding of the request is not supported: use gzip, zstd or none")
	}
	size := ctx.Request.Header.ContentLength()
	if size > limit {
		return nil, tooLarge(limit)
	}
	raw := ctx.RequestBodyStream()
	if raw == nil {
		return nil, nil
	}
	defer dropTrailers(&ctx.Request.Header)
	src := &source{stream: raw, conn: ctx.Conn(), size: size}
	if unpack == nil {
		body, err := readAll(src, max(size, 0), limit)
		return withoutMark(body), src.explain(err)
	}
	body, err := unpack(src, limit)
	return withoutMark(body), src.explain(err)
}

// dropTrailers forgets what stood behind the last chunk, which fasthttp shows like headers: a proxy that takes a header away, or sets it, looks at
// what stands before the body. A header of the same name goes with it.
func dropTrailers(h *fasthttp.RequestHeader) {
	for _, name := range h.PeekTrailerKeys() {
		h.DelBytes(name)
	}
}

var byteOrderMark = []byte("\xef\xbb\xbf")

// withoutMark moves a body over the byte order mark at its beginning, which editors leave in files and which is no JSON (RFC 8259, section
// 8.1). It stays in its buffer.
func withoutMark(body []byte) []byte {
	if !bytes.HasPrefix(body, byteOrderMark) {
		return body
	}
	return append(body[:0], body[len(byteOrderMark):]...)
}

func tooLarge(limit int) *fault.Fault {
	return fault.New(fault.TooLarge, fmt.Sprintf("The request body is larger than the limit of %d bytes", limit))
}

// source is the body as it comes from the connection.
type source struct {
	stream io.Reader
	conn   interface{ SetReadDeadline(t time.Time) error }
	size   int // announced; negative when it isn't

	total    int
	progress int // since the deadline was set
	err      error
}

// errTruncated says that the client left in the middle of the body.
var errTruncated = errors.New("client sent less than it announced")

// Read passes on what has arrived and gives a client that sends more time.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.stream.Read(p)
	s.total += n
	s.progress += n
	if errors.Is(err, io.EOF) && s.size >= 0 && s.total < s.size {
		err = errTruncated
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.err = err
		}
		return n, err
	}
	if s.progress >= minProgress {
		s.progress = 0
		err = s.conn.SetReadDeadline(time.Now().Add(bodyPause))
	}
	return n, err
}

// explain turns the error of reading the body into what the client may see.
func (s *source) explain(err error) error {
	if err == nil {
		return nil
	}
	if f, ok := errors.AsType[*fault.Fault](err); ok {
		return f
	}
	f := fault.New(fault.Invalid, "The request body does not match its content encoding")
	switch {
	case errors.Is(s.err, os.ErrDeadlineExceeded):
		f = fault.New(fault.Timeout, "The request body did not arrive in time")
	case s.err != nil:
		f = fault.New(fault.Invalid, "The request body could not be read to its end")
	}
	f.Cause = err
	return f
}
