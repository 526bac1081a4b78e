package httpapi

import (
	"errors"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
	"hydrallm/shared/query"
)

// admin serves the routes of operators. Nothing else of the request is looked at before the key, and there is no CORS.
func (a *API) admin(x *exchange, path string) error {
	x.route = routeAdmin
	if f := a.Admin.Check(x.Request.Header.Peek("X-Admin-Key"), x.from(), x.Time()); f != nil {
		return f
	}
	if path == pathSessions || strings.HasPrefix(path, pathSessions+"/") {
		return a.adminSessions(x, path)
	}
	switch path {
	case prefixAdmin + "/status":
		return show(x, query.GetStatus, query.None{})
	case prefixAdmin + "/stats":
		return show(x, query.GetStats, query.None{})
	case prefixAdmin + "/calls":
		limit, err := limitOf(x)
		if err != nil {
			return err
		}
		return show(x, query.GetCalls, query.Calls{Limit: limit})
	case prefixAdmin + "/logs":
		limit, err := limitOf(x)
		if err != nil {
			return err
		}
		return show(x, query.GetLogs, query.Logs{Limit: limit})
	case prefixAdmin + "/logs/clear":
		return act(x, query.ClearLogs, query.None{})
	case prefixAdmin + "/keys":
		return a.addKeys(x)
	case prefixAdmin + "/probe":
		force, err := forceOf(x)
		if err != nil {
			return err
		}
		return act(x, query.ProbeKeys, query.Probe{Force: force})
	case prefixAdmin + "/refresh-models":
		return act(x, query.RefreshModels, query.None{})
	}
	return fault.New(fault.NotFound, "There is no such admin route")
}

// show answers a GET with what a service answers.
func show[Q, A any](x *exchange, op query.Op[Q, A], question Q) error {
	if err := x.allow("GET, HEAD"); err != nil {
		return err
	}
	return pass(x, op, question)
}

// act answers a POST, whose body says nothing, with what a service answers.
func act[Q, A any](x *exchange, op query.Op[Q, A], question Q) error {
	if err := x.allow("POST"); err != nil {
		return err
	}
	x.leaveBody()
	return pass(x, op, question)
}

// pass asks a service and answers with its answer as it is.
func pass[Q, A any](x *exchange, op query.Op[Q, A], question Q) error {
	answer, err := op.AskRaw(x.api.Queries(), x.api.Bus, question)
	if err != nil {
		return err
	}
	x.json(fasthttp.StatusOK, answer)
	return nil
}

// forceOf reads whether keys whose cooldown is not over are to be probed too.
func forceOf(x *exchange) (bool, error) {
	text := x.QueryArgs().Peek("force")
	if len(text) == 0 {
		return false, nil
	}
	force, err := strconv.ParseBool(string(text))
	if err != nil {
		return false, &fault.Fault{Kind: fault.Invalid, Message: "force must be true or false", Param: "force"}
	}
	return force, nil
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
