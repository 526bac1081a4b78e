package httpapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/config"
)

// cors lets browsers of the configured origins call the routes of clients.
type cors struct {
	any      bool
	exact    map[string]bool
	patterns []string // what an origin begins with: "scheme://" for any host, "scheme://host" for any port
}

// newCORS takes origins in the form that config.Server.CORSOrigins has.
func newCORS(origins []string) *cors {
	c := &cors{exact: map[string]bool{}}
	for _, o := range origins {
		if o == config.AnyOrigin {
			c.any = true
		} else if begin, wild := strings.CutSuffix(o, "*"); wild {
			c.patterns = append(c.patterns, strings.TrimSuffix(begin, ":"))
		} else {
			c.exact[o] = true
		}
	}
	return c
}

const (
	corsMethods = "GET, HEAD, POST, DELETE, OPTIONS"
	corsExpose  = "X-Request-Id, Request-Id, X-Gateway-Request-Id, X-Gateway-Provider, X-Gateway-Upstream, X-Gateway-Model, X-Gateway-Attempts, " +
		"X-Routing-Reason, X-Gateway-Warning, X-Session-Id, X-Session-Warning, Idempotent-Replayed, Retry-After, Retry-After-Ms, X-Should-Retry, X-Upstream-Request-Id, Openai-Processing-Ms, " +
		"X-Ratelimit-Limit-Requests, X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Requests, X-Ratelimit-Remaining-Tokens, " +
		"X-Ratelimit-Reset-Requests, X-Ratelimit-Reset-Tokens"
	corsMaxAge = "600"
)

func (c *cors) off() bool { return !c.any && len(c.exact) == 0 && len(c.patterns) == 0 }

// allowed says whether pages of an origin may call.
func (c *cors) allowed(origin string) bool {
	if origin == "" {
		return false
	}
	return c.any || c.exact[origin] || slices.ContainsFunc(c.patterns, func(begin string) bool {
		rest, ok := strings.CutPrefix(origin, begin)
		return ok && (strings.HasSuffix(begin, "://") || rest == "" || isPort(rest))
	})
}

// isPort says whether text is a colon and a number.
func isPort(text string) bool {
	number, ok := strings.CutPrefix(text, ":")
	_, err := strconv.ParseUint(number, 10, 16)
	return ok && err == nil
}

// mark sets the headers that let the page read the answer, also when it is an error.
func (c *cors) mark(ctx *fasthttp.RequestCtx) {
	if c.off() {
		return
	}
	h := &ctx.Response.Header
	h.Set(fasthttp.HeaderVary, fasthttp.HeaderOrigin)
	if origin := string(ctx.Request.Header.Peek(fasthttp.HeaderOrigin)); c.allowed(origin) {
		h.Set(fasthttp.HeaderAccessControlAllowOrigin, origin)
		h.Set(fasthttp.HeaderAccessControlExposeHeaders, corsExpose)
	}
}

// preflight answers the question which headers and methods the page may use.
func (c *cors) preflight(ctx *fasthttp.RequestCtx) {
	in, h := &ctx.Request.Header, &ctx.Response.Header
	if !c.allowed(string(in.Peek(fasthttp.HeaderOrigin))) {
		return
	}
	h.Set(fasthttp.HeaderAccessControlAllowMethods, corsMethods)
	h.Set(fasthttp.HeaderAccessControlMaxAge, corsMaxAge)
	if asked := in.Peek(fasthttp.HeaderAccessControlRequestHeaders); len(asked) > 0 {
		h.SetBytesV(fasthttp.HeaderAccessControlAllowHeaders, asked)
	}
	if string(in.Peek("Access-Control-Request-Private-Network")) == "true" { // a page of the internet that calls a gateway at home
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}
