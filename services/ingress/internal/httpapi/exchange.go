package httpapi

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/transport"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/surface"
)

// exchange is one request and its answer.
type exchange struct {
	*fasthttp.RequestCtx
	api     *API
	rid     string // unique, and what the pipeline calls the request
	route   route
	surface contract.Surface // of errors; "" until the route is known
	id      string           // that the path names, "" = none
	model   string           // that is asked for, as far as it is known

	peer      netip.Addr      // address of the client; not valid until it was asked for
	principal string          // who asks; "" until that is known
	key       *clientkey.Key  // that was given; nil = no named one
	pass      *clientkey.Pass // of a request that was let in with it

	notes          map[string]any // what the event says of a change by an operator; nil = nothing
	changesNothing bool           // there is no event: the operator only asks for something, with a body
}

const (
	headerRequestID  = "X-Request-Id"
	headerGatewayRID = "X-Gateway-Request-Id"

	headerAnthropicID = "Request-Id"
)

// begin sets the headers that every answer has. An id that the client gave is given back, beside the gateway's own.
func (x *exchange) begin() {
	x.rid = newRequestID(x.Time())
	h := &x.Response.Header
	if given := x.Request.Header.Peek(headerRequestID); saneRequestID(given) {
		h.SetCanonical([]byte(headerRequestID), given)
		h.SetCanonical([]byte(headerGatewayRID), []byte(x.rid))
	} else {
		h.SetCanonical([]byte(headerRequestID), []byte(x.rid))
	}
}

// speak makes a surface that of the answer, whatever it will be.
func (x *exchange) speak(s contract.Surface) {
	if x.surface = s; s == contract.SurfaceMessages {
		x.Response.Header.SetCanonical([]byte(headerAnthropicID), []byte(x.rid)) // where its SDKs read the id
	}
}

// conn is the connection of the client, or nil when the server runs on other connections than transport's.
func (x *exchange) conn() *transport.Conn {
	c, _ := x.Conn().(*transport.Conn)
	return c
}

var contentJSON = []byte("application/json")

// json answers with a body, which must not change any more.
func (x *exchange) json(status int, body []byte) {
	x.SetStatusCode(status)
	x.Response.Header.SetContentTypeBytes(contentJSON)
	x.Response.SetBodyRaw(body)
}

// fail answers with an error.
func (x *exchange) fail(f *fault.Fault) {
	x.Response.ResetBody()
	writeFault(&x.Response, x.surface, f, x.rid)
	x.leaveBody()
	x.caller().refused(f.Status(), f.PublicCode(), f.Cause)
}

func writeFault(resp *fasthttp.Response, s contract.Surface, f *fault.Fault, rid string) {
	head := f.Head()
	resp.SetStatusCode(head.Status)
	for _, h := range head.Header {
		resp.Header.Set(h[0], h[1])
	}
	resp.SetBodyRaw(surface.ErrorsOf(s).AppendBody(nil, f, rid))
}

// smallBody is what fasthttp throws away of an unread body to keep the connection.
const smallBody = 64 << 10

// leaveBody decides what happens to a body that was not read: a small one is thrown away; with a large one the connection ends, but only
// after the client had the time to read the answer.
func (x *exchange) leaveBody() {
	if x.RequestBodyStream() == nil {
		return
	}
	if size := x.Request.Header.ContentLength(); size >= 0 && size <= smallBody {
		return
	}
	x.SetConnectionClose()
	if c := x.conn(); c != nil {
		c.Linger()
	}
}

// finish ends the answer as far as it is known now: a stream is still to be written.
func (x *exchange) finish() {
	if c := x.conn(); x.api.Stopping() || c != nil && c.Surplus() {
		x.SetConnectionClose()
	}
	x.api.Metrics.answered(x.route, x.Response.StatusCode())
	if x.key != nil {
		x.api.Metrics.clients.answered(x.key.Name, x.Response.StatusCode())
	}
	if x.api.Log.Enabled(x, slog.LevelDebug) {
		x.api.Log.Debug("request", slog.String("rid", x.rid), slog.String("route", string(x.route)),
			slog.Int("status", x.Response.StatusCode()), slog.String("client_key", x.keyName()), slog.Duration("after", time.Since(x.Time())))
	}
}
