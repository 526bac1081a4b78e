package httpapi

import (
	"slices"

	"hydrallm/shared/contract"
)

// decide makes the decision about a request for a configured model, which needs nobody's knowledge, and writes the routing slip.
func (a *API) decide(r *contract.Request) {
	if r.Web.Tool != "" && a.AutoWeb { // without text from the web nobody can do what is demanded, or the provider can
		r.Web.Search = true
	}
	if _, ok := a.Configured()[r.Model]; ok {
		d := contract.ConfiguredModel(r.Model)
		d.Needs, d.Search, d.Tokens = r.Traits.Needs(), r.Web.Search, r.Traits.Tokens
		r.Decision = &d
	}
	r.Slip = a.slip(r)
}

// slip gives the stages that have something to do with a request, in the order of R-001.
func (a *API) slip(r *contract.Request) contract.Slip {
	slip := make(contract.Slip, 0, 4)
	if (r.SessionID != "" || r.Previous != "" || r.References) && a.serves(contract.StageSession) {
		slip = append(slip, contract.StageSession)
	}
	if r.Decision == nil {
		slip = append(slip, contract.StageReceived)
	}
	if a.serves(contract.StageAnalyzed) && a.mayNeedWeb(r) {
		slip = append(slip, contract.StageAnalyzed)
	}
	return append(slip, contract.StageEnriched)
}

// serves says whether the gateway has an optional stage.
func (a *API) serves(s contract.Stage) bool { return slices.Contains(a.Stages, s) }

// mayNeedWeb says whether the enricher should look at a request. It asks only what costs nothing: a configured model is transparent unless the
// client asks for the web. Of an agent, whose request offers tools, only what names an address may need it, or what offers a search. What does
// not end with the user's words does not.
func (a *API) mayNeedWeb(r *contract.Request) bool {
	switch {
	case r.Operation != contract.Chat:
		return false
	case r.Web.Asked():
		return true
	}
	t := &r.Traits
	return r.Web.Auto == nil && a.AutoWeb && !a.transparent(r) && t.UserText && (t.URL || t.Searches || !t.Tools)
}

// transparent says whether a request is for a configured model that gets no more than the client asks for.
func (a *API) transparent(r *contract.Request) bool {
	return r.Decision != nil && !a.Configured()[r.Model]
}
