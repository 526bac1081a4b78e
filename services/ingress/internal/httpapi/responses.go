package httpapi

import (
	"errors"
	"strconv"
	"strings"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/query"
)

// stored sees to what a request wants of stored responses.
func (a *API) stored(req *contract.Request) *fault.Fault {
	stores := a.Stores && a.serves(contract.StageSession)
	req.Store = req.Store && stores && req.SessionID == "" // what is said in a session is stored there
	switch {
	case req.Previous == "" && !req.References:
		return nil
	case req.SessionID != "" && req.Previous != "":
		return &fault.Fault{
			Kind: fault.Invalid, Param: "previous_response_id", Code: openai.CodeInvalidValue,
			Message: "A request has one history: that of its session, or that of 'previous_response_id'.",
		}
	case len(req.Previous) > contract.MaxName:
		return noResponse("previous_response_id", "previous_response_not_found", "Previous response with such an id not found.")
	case stores:
		return nil
	case req.Previous != "":
		return noResponse("previous_response_id", "previous_response_not_found", "Previous response with id '"+req.Previous+"' not found: this gateway stores no responses.")
	}
	return noResponse("input", "item_not_found", "The items that 'input' refers to are not found: this gateway stores no responses.")
}

func noResponse(param, code, message string) *fault.Fault {
	return &fault.Fault{Kind: fault.NotFound, Param: param, Code: code, Message: message}
}

// storedResponse shows or deletes a response that is stored, or one in the background.
func (a *API) storedResponse(x *exchange, _ *operation) error {
	id, f := x.responseID()
	if f != nil {
		return f
	}
	deletes := string(x.Method()) == "DELETE"
	if deletes {
		x.leaveBody()
	}
	rec, err := a.recording(x)
	switch {
	case err == nil && deletes:
		return a.deleteRecorded(x, rec, id)
	case err == nil:
		return a.showRecorded(x, rec)
	case !errors.Is(err, bus.ErrNoRecording):
		return err
	case deletes:
		return pass(x, query.DeleteResponse, id)
	}
	if x.wantsStream() {
		if _, err := query.GetResponse.AskRaw(a.Queries(), a.Bus, id); err != nil {
			return err
		}
		return &fault.Fault{
			Kind: fault.Invalid, Param: "stream", Code: openai.CodeInvalidValue,
			Message: "Only the stream of a response in the background can be taken up again, and only for some hours.",
		}
	}
	return pass(x, query.GetResponse, id)
}

// responseID gives the id in the path, which need not be that of a response.
func (x *exchange) responseID() (query.ResponseID, *fault.Fault) {
	if strings.Contains(x.id, "/") || len(x.id) > contract.MaxName {
		return query.ResponseID{}, noResponse("", "response_not_found", "Response with id '"+shown(x.id)+"' not found.")
	}
	return query.ResponseID{ID: x.id, Principal: x.principal}, nil
}

// Limits of a page of items, as OpenAI documents them.
const (
	defaultItems = 20
	maxItems     = 100
)

// inputItems lists the input of a stored response. What "include" asks for is always there, as far as it is stored.
func (a *API) inputItems(x *exchange, _ *operation) error {
	id, f := x.responseID()
	if f != nil {
		return f
	}
	args := x.QueryArgs()
	q := query.InputItems{ResponseID: id, After: string(args.Peek("after")), Limit: defaultItems}
	if text := args.Peek("limit"); len(text) > 0 {
		n, err := strconv.Atoi(string(text))
		if err != nil || n < 1 || n > maxItems {
			return &fault.Fault{Kind: fault.Invalid, Param: "limit", Code: openai.CodeInvalidValue, Message: "'limit' must be a number from 1 to 100."}
		}
		q.Limit = n
	}
	switch order := string(args.Peek("order")); order {
	case "", "desc":
	case "asc":
		q.Ascending = true
	default:
		return &fault.Fault{Kind: fault.Invalid, Param: "order", Code: openai.CodeInvalidValue, Message: "'order' must be 'asc' or 'desc'."}
	}
	return pass(x, query.ListInputItems, q)
}
