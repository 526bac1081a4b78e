package httpapi

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/bus"
	"hydrallm/shared/fault"
	"hydrallm/shared/topology"
)

// How long a service may take to answer an admin request, and one that makes it ask providers or store many things.
const (
	queryTime = 5 * time.Second
	slowTime  = time.Minute
)

// admin serves the routes of operators. Nothing else of the request is looked at before the key, and there is no CORS.
func (a *API) admin(x *exchange, path string) error {
	x.route = routeAdmin
	if f := a.Admin.Check(x.Request.Header.Peek("X-Admin-Key"), x.from(), x.Time()); f != nil {
		return f
	}
	switch path {
	case prefixAdmin + "/status":
		return a.adminQuery(x, "GET, HEAD", topology.Dispatcher, "status", nil)
	case prefixAdmin + "/stats":
		return a.adminQuery(x, "GET, HEAD", topology.SessionWriter, "stats", nil)
	case prefixAdmin + "/logs":
		limit, err := limitOf(x)
		if err != nil {
			return err
		}
		return a.adminQuery(x, "GET, HEAD", topology.SessionWriter, "logs", map[string]int{"limit": limit})
	case prefixAdmin + "/logs/clear":
		return a.adminQuery(x, "POST", topology.SessionWriter, "clear_logs", nil)
	case prefixAdmin + "/keys":
		return a.addKeys(x)
	case prefixAdmin + "/probe":
		return a.probe(x)
	case prefixAdmin + "/refresh-models":
		return a.adminAction(x, "refresh_models", nil)
	}
	return fault.New(fault.NotFound, "There is no such admin route")
}

// adminQuery asks a service and passes its answer on as it is.
func (a *API) adminQuery(x *exchange, methods, service, op string, question any) error {
	if err := x.allow(methods); err != nil {
		return err
	}
	return a.query(x, queryTime, service, op, question)
}

// adminAction makes the dispatcher ask providers, which takes its time. A body is nothing to it.
func (a *API) adminAction(x *exchange, op string, question any) error {
	if err := x.allow("POST"); err != nil {
		return err
	}
	x.leaveBody()
	return a.query(x, slowTime, topology.Dispatcher, op, question)
}

// probe asks for a probe of keys, with force=true also of those whose cooldown has not passed.
func (a *API) probe(x *exchange) error {
	force := false
	if text := x.QueryArgs().Peek("force"); len(text) > 0 {
		var err error
		if force, err = strconv.ParseBool(string(text)); err != nil {
			return &fault.Fault{Kind: fault.Invalid, Message: "force must be true or false", Param: "force"}
		}
	}
	return a.adminAction(x, "probe", map[string]bool{"force": force})
}

// query asks a service and answers with what it says.
func (a *API) query(x *exchange, limit time.Duration, service, op string, question any) error {
	ctx, cancel := a.Within(limit)
	defer cancel()
	var answer json.RawMessage
	if err := a.Bus.Query(ctx, service, op, question, &answer); err != nil {
		return queryFault(service, err)
	}
	x.json(fasthttp.StatusOK, answer)
	return nil
}

func queryFault(service string, err error) *fault.Fault {
	refusal, ok := errors.AsType[*bus.QueryError](err)
	if !ok {
		return &fault.Fault{Kind: fault.Unavailable, Message: "The " + service + " service does not answer", RetryAfter: time.Second, Cause: err}
	}
	status, errCode := strconv.Atoi(refusal.Code)
	switch {
	case errCode != nil || status < 400 || status > 499:
		return &fault.Fault{Kind: fault.Internal, Message: "Internal server error", Cause: err}
	case status == fasthttp.StatusConflict: // what was asked for is being done already
		return &fault.Fault{Kind: fault.Conflict, Message: refusal.Message, Cause: err}
	default:
		return &fault.Fault{Kind: fault.Invalid, HTTPStatus: status, Message: refusal.Message, Cause: err}
	}
}

// Bounds of limit parameters.
const (
	defaultLimit = 50
	maxLimit     = 1000
)

func limitOf(x *exchange) (int, error) {
	text := x.QueryArgs().Peek("limit")
	if len(text) == 0 {
		return defaultLimit, nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, &fault.Fault{Kind: fault.Invalid, Message: "limit must be a number", Param: "limit"}
	}
	return min(max(n, 1), maxLimit), nil
}
