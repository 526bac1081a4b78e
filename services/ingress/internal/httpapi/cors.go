package httpapi

import (
	"slices"

	"github.com/valyala/fasthttp"
)

// cors lets browsers of the configured origins call the routes of clients.
type cors struct {
	origins []string
	any     bool
}

func newCORS(origins []string) *cors {
	return &cors{origins: origins, any: slices.Contains(origins, "*")}
}

const (
	corsMethods = "GET, HEAD, POST, OPTIONS"
	corsExpose  = "X-Request-Id, X-Gateway-Request-Id, X-Gateway-Provider, X-Gateway-Upstream, X-Gateway-Model, X-Gateway-Attempts, " +
		"X-Routing-Reason, Retry-After"
	corsMaxAge = "600"
)

func (c *cors) allowed(origin []byte) bool {
	return len(origin) > 0 && (c.any || slices.Contains(c.origins, string(origin)))
}

// mark sets the headers that let the page read the answer, also when it is an error.
func (c *cors) mark(ctx *fasthttp.RequestCtx) {
	if len(c.origins) == 0 {
		return
	}
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	if origin := ctx.Request.Header.Peek(fasthttp.HeaderOrigin); c.allowed(origin) {
		h.SetBytesV(fasthttp.HeaderAccessControlAllowOrigin, origin)
		h.Set(fasthttp.HeaderAccessControlExposeHeaders, corsExpose)
	}
}

// preflight answers the question which headers and methods the page may use.
func (c *cors) preflight(ctx *fasthttp.RequestCtx) {
	in, h := &ctx.Request.Header, &ctx.Response.Header
	if !c.allowed(in.Peek(fasthttp.HeaderOrigin)) {
		return
	}
	h.Set(fasthttp.HeaderAccessControlAllowMethods, corsMethods)
	h.Set(fasthttp.HeaderAccessControlMaxAge, corsMaxAge)
	if asked := in.Peek(fasthttp.HeaderAccessControlRequestHeaders); len(asked) > 0 {
		h.SetBytesV(fasthttp.HeaderAccessControlAllowHeaders, asked)
	}
}
