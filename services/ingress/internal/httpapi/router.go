package httpapi

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// Paths.
const (
	pathChat       = "/v1/chat/completions"
	pathEmbeddings = "/v1/embeddings"
	pathModels     = "/v1/models"
	pathResponses  = "/v1/responses"
	pathMessages   = "/v1/messages"
	prefixV1       = "/v1/"
	prefixAdmin    = "/v1/admin"
)

// Handle answers one request.
func (a *API) Handle(ctx *fasthttp.RequestCtx) {
	x := &exchange{RequestCtx: ctx, api: a}
	defer x.finish()
	defer x.recover()
	x.begin()
	if err := a.route(x); err != nil {
		x.fail(fault.From(err))
	}
}

// route finds the handler of a request and checks who calls. Nothing of the body is read before.
func (a *API) route(x *exchange) error {
	path := string(x.Path())
	if c := x.conn(); c != nil && c.Surplus() && path != "/healthz" && path != "/readyz" && path != "/metrics" {
		return &fault.Fault{Kind: fault.Unavailable, Code: "too_many_connections", Message: "The gateway has too many connections", RetryAfter: retryAfter}
	}
	switch {
	case path == prefixAdmin || strings.HasPrefix(path, prefixAdmin+"/"):
		return a.admin(x, path)
	case strings.HasPrefix(path, prefixV1):
		return a.v1(x, path)
	}
	var handler func(*exchange) error
	switch path {
	case "/":
		x.route, handler = routeRoot, a.root
	case "/healthz":
		x.route, handler = routeHealth, a.live
	case "/readyz":
		x.route, handler = routeHealth, a.ready
	case "/metrics":
		x.route, handler = routeMetrics, a.metrics
	case "/ui", "/ui/":
		return fault.New(fault.NotFound, "The web interface is not part of this build")
	default:
		return notFound(x)
	}
	if err := x.allow("GET, HEAD"); err != nil {
		return err
	}
	return handler(x)
}

// v1 serves the routes of clients.
func (a *API) v1(x *exchange, path string) error {
	a.cors.mark(x.RequestCtx)
	path = strings.TrimSuffix(path, "/")
	op := operationAt(path)
	switch {
	case op != nil:
		x.route = op.route
	case path == pathModels, strings.HasPrefix(path, pathModels+"/"):
		x.route = routeModels
	}
	if x.IsOptions() {
		return a.options(x)
	}
	if !a.Clients.Allow(&x.Request.Header) {
		x.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
		return fault.New(fault.Unauthorized, "The API key is missing or wrong")
	}
	switch {
	case op != nil:
		if err := x.allow("POST"); err != nil {
			return err
		}
		return a.work(x, op)
	case x.route == routeModels:
		if err := x.allow("GET, HEAD"); err != nil {
			return err
		}
		if path == pathModels {
			return a.listModels(x)
		}
		return a.showModel(x)
	case path == pathResponses:
		return fault.New(fault.NotFound, "The Responses API is not supported: use /v1/chat/completions")
	case path == pathMessages:
		return fault.New(fault.NotFound, "The Messages API is not supported: use /v1/chat/completions")
	}
	return notFound(x)
}

// options answers OPTIONS on a route of clients, which needs no key (HDR-08).
func (a *API) options(x *exchange) error {
	methods := "POST, OPTIONS"
	switch x.route {
	case routeChat, routeEmbeddings:
	case routeModels:
		methods = "GET, HEAD, OPTIONS"
	default:
		return notFound(x)
	}
	a.cors.preflight(x.RequestCtx)
	x.Response.Header.Set(fasthttp.HeaderAllow, methods)
	x.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// allow gives a fault unless the method is among the given ones.
func (x *exchange) allow(methods string) error {
	for method := range strings.SplitSeq(methods, ", ") {
		if string(x.Method()) == method {
			return nil
		}
	}
	x.Response.Header.Set(fasthttp.HeaderAllow, methods)
	return fault.New(fault.MethodNot, "This method is not allowed here: use "+methods)
}

func notFound(*exchange) error { return fault.New(fault.NotFound, "There is nothing at this address") }

// recover turns a panic into an answer.
func (x *exchange) recover() {
	p := recover()
	if p == nil {
		return
	}
	x.api.Log.Error("handler panicked", slog.String("rid", x.rid), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	x.fail(fault.From(fmt.Errorf("panic: %v", p)))
}
