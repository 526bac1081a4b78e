package httpapi

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// strict refuses what fasthttp reads with a leniency that another server on the way need not have. Where the two disagree about a header
// or about the end of a request, one request can hide another: the rules of a proxy in front are passed by. What is refused is what RFC 9112 lets a
// server refuse: other versions (section 2.3), folded lines and spaces in names (5), lines without CR (2.2), a coding of transfer that is not
// chunked, and one beside a length (6.1). Repeated lengths, codings and hosts, and bytes that have no place in a header fasthttp refuses itself.
func strict(h *fasthttp.RequestHeader) *fault.Fault {
	if v := h.Protocol(); string(v) != "HTTP/1.1" && string(v) != "HTTP/1.0" {
		return notHTTP()
	}
	var length, coding bool
	for raw := h.RawHeaders(); len(raw) > 0; {
		end := bytes.IndexByte(raw, '\n')
		if end < 1 || raw[end-1] != '\r' {
			return notHTTP()
		}
		line := raw[:end-1]
		raw = raw[end+1:]
		if len(line) == 0 {
			continue // the end
		}
		colon := bytes.IndexByte(line, ':')
		if colon < 1 || bytes.ContainsAny(line[:colon], " \t") { // a folded line begins with one of them
			return notHTTP()
		}
		switch name := line[:colon]; {
		case bytes.EqualFold(name, contentLength):
			length = true
		case bytes.EqualFold(name, transferEncoding):
			coding = true
			if !bytes.EqualFold(bytes.Trim(line[colon+1:], " \t"), chunked) {
				return notHTTP()
			}
		}
	}
	if length && coding {
		return notHTTP()
	}
	return nil
}

var (
	contentLength    = []byte(fasthttp.HeaderContentLength)
	transferEncoding = []byte(fasthttp.HeaderTransferEncoding)
	chunked          = []byte("chunked")
)

// notHTTP is also the answer to what can't be read at all.
func notHTTP() *fault.Fault { return fault.New(fault.Invalid, "The request is not valid HTTP") }

// refuseForm answers a request of which it is not sure where it ends. The connection ends with it.
func (x *exchange) refuseForm(f *fault.Fault) {
	x.fail(f)
	x.SetConnectionClose()
	if c := x.conn(); c != nil {
		c.Linger()
	}
}
