package httpapi

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// headerPriority says before whom a request is served among those that wait for a model.
const headerPriority = "X-Priority"

// priority takes the priority of a request from its header, or from the client's key, which is the highest that it can ask for.
func (x *exchange) priority(req *contract.Request) *fault.Fault {
	given := x.Request.Header.Peek(headerPriority)
	if req.Priority = contract.Priority(given); req.Priority != "" && !req.Priority.Known() {
		return &fault.Fault{Kind: fault.Invalid, Param: headerPriority, Code: openai.CodeInvalidValue, Message: "The header " + headerPriority + " must be high, normal or low"}
	}
	if k := x.key; k != nil && k.Priority != "" && (req.Priority == "" || req.Priority.Level() < k.Priority.Level()) {
		req.Priority = k.Priority
	}
	return nil
}
