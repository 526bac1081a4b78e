package httpapi

import (
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// Models is the model list, encoded; *modellist.List is one.
type Models interface {
	All() []byte
	Find(id string) (body []byte, ok bool)
}

// listModels gives all entries. There may be thousands.
func (a *API) listModels(x *exchange) error {
	body := a.Models.All()
	x.json(fasthttp.StatusOK, nil)
	a.whole(x, [][]byte{body}, len(body))
	return nil
}

// showModel gives one entry. Ids hold slashes and colons, escaped or not (URL-03), so the path is taken as the client sent it.
func (a *API) showModel(x *exchange) error {
	id, err := url.PathUnescape(strings.TrimPrefix(string(x.URI().PathOriginal()), pathModels+"/"))
	if err == nil {
		if body, ok := a.Models.Find(id); ok {
			x.json(fasthttp.StatusOK, body)
			return nil
		}
	}
	return fault.New(fault.ModelNotFound, "There is no model with this id")
}
