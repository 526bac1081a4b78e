package httpapi

import (
	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// Models is the model list, encoded; *modellist.List is one.
type Models interface {
	All() []byte
	Find(id string) (body []byte, ok bool)
}

// listModels gives all entries. There may be thousands.
func (a *API) listModels(x *exchange, _ *operation) error {
	body := a.Models.All()
	x.json(fasthttp.StatusOK, nil)
	a.whole(x, [][]byte{body}, len(body))
	return nil
}

// showModel gives one entry. Ids hold slashes and colons, which the client may have escaped (URL-03).
func (a *API) showModel(x *exchange, _ *operation) error {
	if body, ok := a.Models.Find(x.id); ok {
		x.json(fasthttp.StatusOK, body)
		return nil
	}
	return &fault.Fault{Kind: fault.ModelNotFound, Message: "There is no model with this id", Param: "model"}
}
