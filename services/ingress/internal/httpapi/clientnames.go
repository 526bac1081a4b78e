package httpapi

import (
	"regexp"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// clientMember is a member of an answer, as services write it, that says whose a sum or a call is. Within a string of JSON it can't be: there a quote has a
// backslash before it.
var clientMember = regexp.MustCompile(`"(?:principal|name)":"(` + contract.NamedPrincipal + `[a-z0-9]+)"`)

// withNames puts the names of client keys beside their ids in the JSON that a service answers. Names are those of today: the ledger has the ids.
func (a *API) withNames(body []byte) []byte {
	if !a.ClientKeys.Any() {
		return body
	}
	var named []byte
	done := 0
	for _, at := range clientMember.FindAllSubmatchIndex(body, -1) {
		if k := a.ClientKeys.Get(string(body[at[2]:at[3]])); k != nil {
			named = append(append(named, body[done:at[1]]...), `,"client_name":`...)
			named = rawjson.AppendString(named, k.Name)
			done = at[1]
		}
	}
	if done == 0 {
		return body
	}
	return append(named, body[done:]...)
}
