package httpapi

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// stored sees to what a request wants of stored responses.
func (a *API) stored(req *contract.Request) *fault.Fault {
	req.Store = false
	switch {
	case req.Background:
		return refuseMember("background", "Responses in the background are not part of this build: leave 'background' out.")
	case req.Previous != "":
		return refuseMember("previous_response_id", "Responses are not stored by this build: send the whole conversation as 'input'.")
	case req.References:
		return refuseMember("input", "Responses are not stored by this build: send items themselves, not references to them.")
	}
	return nil
}

func refuseMember(param, message string) *fault.Fault {
	return &fault.Fault{Kind: fault.Invalid, Param: param, Code: "unsupported_parameter", Message: message}
}
