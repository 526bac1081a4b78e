package httpapi

import (
	"fmt"
	"log/slog"
	"net/url"
	"runtime/debug"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// Paths.
const (
	pathModels = "/v1/models"

	pathResponses = "/v1/responses"

	pathV1      = "/v1"
	prefixV1    = "/v1/"
	prefixAdmin = "/v1/admin"
)

// Handle answers one request.
func (a *API) Handle(ctx *fasthttp.RequestCtx) {
	x := &exchange{RequestCtx: ctx, api: a, route: routeOther}
	defer x.finish()
	defer x.recover()
	x.begin()
	if f := strict(&x.Request.Header); f != nil {
		x.refuseForm(f)
		return
	}
	if err := a.route(x); err != nil {
		x.fail(fault.From(err))
	}
}

// route finds the handler of a request and checks who calls. Nothing of the body is read before.
func (a *API) route(x *exchange) error {
	target := string(x.Request.Header.RequestURI())
	path, bad := pathOf(target)
	if bad != nil {
		return a.badPath(x, target, bad)
	}
	if c := x.conn(); c != nil && c.Surplus() && path != "/healthz" && path != "/readyz" && path != "/metrics" {
		return &fault.Fault{Kind: fault.Unavailable, Code: "too_many_connections", Message: "The gateway has too many connections", RetryAfter: retryAfter}
	}
	switch {
	case path == prefixAdmin || strings.HasPrefix(path, prefixAdmin+"/"):
		return a.admin(x, path)
	case path == pathV1 || strings.HasPrefix(path, prefixV1):
		return a.v1(x, strings.TrimSuffix(path, "/"))
	case path == pathUI || strings.HasPrefix(path, pathUI+"/"):
		return a.ui(x, path)
	case path == pathDocs || strings.HasPrefix(path, pathDocs+"/"):
		return a.docs(x, path)
	}
	r, ok := plainRoutes[path]
	if !ok {
		return x.unknown(path)
	}
	x.route = r.label
	if err := x.allow(get); err != nil {
		return err
	}
	return r.serve(a, x)
}

// plainRoutes are those that nobody needs a key for, beside the web interface and the documents.
var plainRoutes = map[string]struct {
	label route
	serve func(*API, *exchange) error
}{
	"/":             {routeRoot, (*API).root},
	"/openapi.json": {routeRoot, (*API).openAPI},
	"/healthz":      {routeHealth, (*API).live},
	"/readyz":       {routeHealth, (*API).ready},
	"/metrics":      {routeMetrics, (*API).metrics},
}

// badPath refuses a path that is no route. A page may read why below /v1, as it may read a 404, but nothing of what may be meant for the
// admin.
func (a *API) badPath(x *exchange, target string, bad *fault.Fault) error {
	path, _ := pathPart(target)
	if read, err := url.PathUnescape(path); err == nil {
		path = read
	}
	if !strings.HasPrefix(path, prefixV1) || strings.Contains(path, "/admin") {
		return bad
	}
	x.speak(surfaceBelow(path))
	if a.cors.mark(x.RequestCtx); x.IsOptions() {
		return a.options(x)
	}
	return bad
}

// v1 serves the routes of clients. A preflight needs no key (HDR-08), nor does the look whether a gateway is there.
func (a *API) v1(x *exchange, path string) error {
	a.cors.mark(x.RequestCtx)
	op, given := operationAt(path)
	switch {
	case op != nil:
		x.route, x.id = op.route, given
		x.speak(op.spoken(x))
	case path == pathV1:
		x.route = routeRoot
	default:
		x.speak(surfaceBelow(path))
	}
	switch {
	case x.IsOptions():
		return a.options(x)
	case x.route == routeRoot:
		if err := x.allow(get); err != nil {
			return err
		}
		return a.root(x)
	}
	who, f := a.Clients.Identify(&x.Request.Header, x.from(), x.Time())
	if f != nil {
		if f.Kind == fault.Unauthorized {
			x.Response.Header.Set(fasthttp.HeaderWWWAuthenticate, "Bearer")
		}
		return f
	}
	x.principal, x.key = who.Principal, who.Key
	x.showLimits()
	if op == nil || noSuchResponse(op, x, given) {
		return x.unknown(path)
	}
	if err := x.allow(op.methods); err != nil {
		return err
	}
	return op.handle(a, x, op)
}

// noSuchResponse says whether what stands in the place of a response's id is an operation that is not there, such as POST /v1/responses/compact.
func noSuchResponse(op *operation, x *exchange, given string) bool {
	_, is := contract.RequestOf(given)
	return op.path == pathResponses+"/"+id && x.IsPost() && !is
}

// options answers OPTIONS on a route of clients. What is no route is answered too, or a page could not read the 404.
func (a *API) options(x *exchange) error {
	methods := corsMethods
	path, _ := pathPart(string(x.Request.Header.RequestURI()))
	if op, _ := operationAt(strings.TrimSuffix(path, "/")); op != nil {
		methods = op.methods + ", OPTIONS"
	} else if x.route == routeRoot {
		methods = get + ", OPTIONS"
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

// recover turns a panic into an answer.
func (x *exchange) recover() {
	p := recover()
	if p == nil {
		return
	}
	x.api.Log.Error("handler panicked", slog.String("rid", x.rid), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	x.fail(fault.From(fmt.Errorf("panic: %v", p)))
}
