package httpapi

import (
	"strconv"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// Models is the model list; *modellist.List is one.
type Models interface {
	Now() modellist.Part
	Only(allowed func(id string) bool) modellist.Part

	// Discovered gives the ids of what discovery found, listed or not.
	Discovered() []string
}

// models gives the models that the caller may ask for.
func (x *exchange) models() modellist.Part {
	if x.key != nil && len(x.key.Models) > 0 {
		return x.api.Models.Only(x.key.Allows)
	}
	return x.api.Models.Now()
}

// listModels gives all entries. There may be thousands.
func (a *API) listModels(x *exchange, _ *operation) error {
	models := x.models()
	body := models.All()
	if x.surface == contract.SurfaceMessages {
		var err error
		if body, err = modelPage(models, x.QueryArgs()); err != nil {
			return err
		}
	}
	x.json(fasthttp.StatusOK, nil)
	a.whole(x, [][]byte{body}, len(body))
	return nil
}

// modelPage gives a part of the list, as clients of Anthropic ask for it: without a limit, all of it.
func modelPage(models modellist.Part, query *fasthttp.Args) ([]byte, error) {
	p := modellist.Page{After: string(query.Peek("after_id")), Before: string(query.Peek("before_id"))}
	if text := string(query.Peek("limit")); text != "" {
		var err error
		if p.Limit, err = strconv.Atoi(text); err != nil || p.Limit < 1 {
			return nil, &fault.Fault{Kind: fault.Invalid, Message: "limit: must be a positive number", Param: "limit", Code: openai.CodeInvalidValue}
		}
	}
	body, ok := models.Page(p)
	if !ok {
		return nil, &fault.Fault{Kind: fault.Invalid, Message: "after_id, before_id: there is no model with this id", Param: "after_id", Code: openai.CodeInvalidValue}
	}
	return body, nil
}

// showModel gives one entry. Ids hold slashes and colons, which the client may have escaped (URL-03).
func (a *API) showModel(x *exchange, _ *operation) error {
	models := x.models()
	find := models.Find
	if x.surface == contract.SurfaceMessages {
		find = models.Entry
	}
	if body, ok := find(x.id); ok {
		x.json(fasthttp.StatusOK, body)
		return nil
	}
	return &fault.Fault{Kind: fault.ModelNotFound, Message: "There is no model with this id", Param: "model"}
}
