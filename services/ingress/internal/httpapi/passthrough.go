package httpapi

import (
	"cmp"
	"fmt"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
)

// passthrough gives an operation whose requests go to an upstream as they are, and whose answers come back as they are.
func passthrough(o contract.Operation, r route, form bool) operation {
	return operation{
		path: prefixV1 + string(o), methods: post, route: r, surface: contract.SurfaceChat, handle: (*API).work,
		asks: o, scan: scanPassthrough, form: form,
	}
}

// defaultModels are those of requests that name none, as OpenAI has it where the clients leave the name out.
var defaultModels = map[contract.Operation]string{contract.Moderations: "omni-moderation-latest"}

func scanPassthrough(body []byte, req *contract.Request) error {
	scan, err := openai.ScanPassthrough(body, req.ContentType)
	if err != nil {
		return err
	}
	req.Model = cmp.Or(scan.Model, defaultModels[req.Operation])
	if req.Model == "" {
		return &openai.RequestError{Message: "'model' is missing: the request needs the name of a model.", Param: "model", Code: openai.CodeMissing}
	}
	return nil
}

// contentType gives the type of a body that is a form; "" where bodies are JSON, whatever clients say of them.
func (x *exchange) contentType(op *operation) string {
	if given := string(x.Request.Header.ContentType()); op.form && openai.IsForm(given) {
		return given
	}
	return ""
}

// notConfigured refuses a passthrough for any model that the configuration does not have: what other models of a provider can do is not known, so
// that nothing is routed.
func (a *API) notConfigured(op *operation, model string) *fault.Fault {
	if _, ok := a.Configured()[model]; ok || !op.asks.Passthrough() {
		return nil
	}
	f := fault.New(fault.ModelNotFound, fmt.Sprintf("The model `%s` is not configured, which %s needs: add it to 'models' in the configuration, with an "+
		"upstream whose provider has this route", model, op.path))
	f.Param = "model"
	return f
}
