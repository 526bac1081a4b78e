package httpapi

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// admin serves the routes of operators. Nothing else of the request is looked at before the key, and there is no CORS.
func (a *API) admin(x *exchange, path string) error {
	x.route = routeAdmin
	if f := a.Admin.Check(adminKey(&x.Request.Header), x.from(), x.Time()); f != nil {
		return f
	}
	if a.Admin.Open() && fromElsewhere(&x.Request.Header) {
		return fault.New(fault.Forbidden, "Without an admin key, pages of other sites may not use the admin routes")
	}
	below := strings.TrimPrefix(path, prefixAdmin)
	var methods []string
	for _, r := range a.operatorRoutes() {
		given, ok := r.match(below)
		switch {
		case !ok:
		case r.serves(string(x.Method())):
			x.id = given
			return a.serveAdmin(x, r)
		default:
			methods = append(methods, r.allowed())
		}
	}
	if methods == nil {
		return fault.New(fault.NotFound, "There is no such admin route")
	}
	return x.allow(strings.Join(methods, ", "))
}

// operatorRoutes are those that this gateway has.
func (a *API) operatorRoutes() []adminRoute {
	if a.Demo == nil {
		return slices.Concat(adminRoutes(), adminExtensions())
	}
	return slices.Concat(adminRoutes(), adminExtensions(), demoRoutes())
}

// adminKey gives the key of an operator, which must be the same wherever it is given; otherwise it is a wrong one.
func adminKey(h *fasthttp.RequestHeader) []byte {
	keys := h.PeekAll("X-Admin-Key")
	if len(keys) == 0 {
		return nil
	}
	for _, k := range keys[1:] {
		if !bytes.Equal(k, keys[0]) {
			return bytes.Join(keys, []byte(","))
		}
	}
	return keys[0]
}

// fromElsewhere says whether a browser sends a request for a page that is not the gateway's. What needs no preflight is sent without asking, and where no key
// is needed it would be done.
func fromElsewhere(h *fasthttp.RequestHeader) bool {
	switch string(h.Peek("Sec-Fetch-Site")) {
	case "", "same-origin", "none":
		return false
	}
	return true
}

// serveAdmin serves a route and keeps in the events what it changed.
func (a *API) serveAdmin(x *exchange, r adminRoute) error {
	err := r.serve(x)
	if !r.reads() && !x.changesNothing {
		a.audit(x, r, err)
	}
	return err
}

// AdminRoutes names the routes of R-330 as method and path, in their order there, and those beyond them. All of them are behind one check.
func AdminRoutes() (required, beyond []string) {
	name := func(all []adminRoute) (names []string) {
		for _, r := range all {
			names = append(names, r.method+" "+prefixAdmin+r.path)
		}
		return names
	}
	return name(adminRoutes()), name(slices.Concat(adminExtensions(), demoRoutes()))
}

// adminRoute is a route of operators.
type adminRoute struct {
	method string // GET serves HEAD as well; every other one changes something
	path   string // below /v1/admin; {id}, or {tool}, stands for one segment, which is the id of the exchange
	serve  func(x *exchange) error
}

func (r adminRoute) reads() bool { return r.method == fasthttp.MethodGet }

func (r adminRoute) serves(method string) bool {
	return method == r.method || r.reads() && method == fasthttp.MethodHead
}

// allowed is what the route allows, in the form of the header.
func (r adminRoute) allowed() string {
	if r.reads() {
		return get
	}
	return r.method
}

// match says whether a path is that of the route, and what stands there for its {id}.
func (r adminRoute) match(path string) (given string, ok bool) {
	before, after, variable := strings.Cut(r.path, id)
	if !variable {
		before, after, variable = strings.Cut(r.path, tool)
	}
	if !variable {
		return "", path == r.path
	}
	given, ok = strings.CutPrefix(path, before)
	if !ok {
		return "", false
	}
	given, ok = strings.CutSuffix(given, after)
	return given, ok && given != "" && !strings.Contains(given, "/")
}

// tell serves a route with what a service answers, as it is. question reads what the request asks for.
func tell[Q, A any](op query.Op[Q, A], question func(x *exchange) (Q, error)) func(*exchange) error {
	return func(x *exchange) error {
		q, err := question(x)
		if err != nil {
			return err
		}
		x.leaveBody()
		return pass(x, op, q)
	}
}

// nothing is the question of a route that asks for nothing.
func nothing(*exchange) (query.None, error) { return query.None{}, nil }

// pass asks a service and answers with its answer as it is.
func pass[Q, A any](x *exchange, op query.Op[Q, A], question Q) error {
	answer, err := op.AskRaw(x.api.Queries(), x.api.Bus, question)
	if err != nil {
		return err
	}
	x.json(fasthttp.StatusOK, x.api.withNames(answer))
	return nil
}

// probeOf reads whether keys whose cooldown is not over are to be probed too.
func probeOf(x *exchange) (q query.Probe, err error) {
	text := x.QueryArgs().Peek("force")
	if len(text) == 0 {
		return q, nil
	}
	if q.Force, err = strconv.ParseBool(string(text)); err != nil {
		return q, &fault.Fault{Kind: fault.Invalid, Message: "force must be true or false", Param: "force"}
	}
	return q, nil
}

// Bounds of limit parameters.
const (
	defaultLimit = 50
	maxLimit     = 1000
)

func limitOf(x *exchange, byDefault int) (int, error) {
	text := x.QueryArgs().Peek("limit")
	if len(text) == 0 {
		return byDefault, nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, &fault.Fault{Kind: fault.Invalid, Message: "limit must be a number", Param: "limit"}
	}
	return min(max(n, 1), maxLimit), nil
}

func callsOf(x *exchange) (q query.Calls, err error) {
	q.Limit, err = limitOf(x, defaultLimit)
	return q, err
}
