package httpapi

import (
	"errors"
	"os"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/transport"
	"hydrallm/shared/fault"
)

// refuse answers a request that could not be read. The connection ends with it.
func (a *API) refuse(ctx *fasthttp.RequestCtx, err error) {
	f := notHTTP()
	switch {
	case isTooLong(err):
		f = fault.New(fault.HeaderTooLarge, "The request line and headers are too long")
	case errors.Is(err, os.ErrDeadlineExceeded):
		f = fault.New(fault.Timeout, "The request did not arrive in time")
	}
	ctx.Response.Reset()
	rid := newRequestID(time.Now())
	ctx.Response.Header.SetCanonical([]byte(headerRequestID), []byte(rid))
	writeFault(&ctx.Response, "", f, rid)
	if c, ok := ctx.Conn().(*transport.Conn); ok {
		c.Linger()
	}
	a.Metrics.answered(routeOther, f.Status())
}

func isTooLong(err error) bool {
	_, ok := errors.AsType[*fasthttp.ErrSmallBuffer](err)
	return ok
}
