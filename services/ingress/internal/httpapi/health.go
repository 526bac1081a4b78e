package httpapi

import (
	"encoding/json"
	"fmt"

	"github.com/prometheus/common/expfmt"
	"github.com/valyala/fasthttp"

	"hydrallm/shared/fault"
)

// banner is the answer of GET / (R-023). Without its documents a gateway names the description of its interface.
func banner(version string, docs bool) []byte {
	pages := "/openapi.json"
	if docs {
		pages = pathDocs + "/"
	}
	body, err := json.Marshal(map[string]any{
		"status": "online", "message": "HydraLLM, an OpenAI-compatible gateway", "version": version,
		"docs": pages, "openapi": "/openapi.json", "ui": "/ui/",
	})
	if err != nil { // a map of strings always marshals
		panic(err)
	}
	return body
}

func (a *API) root(x *exchange) error {
	x.json(fasthttp.StatusOK, a.banner)
	return nil
}

// openAPI shows the description of this interface.
func (a *API) openAPI(x *exchange) error {
	document, err := a.document()
	if err != nil {
		return err
	}
	x.Response.Header.Set(fasthttp.HeaderCacheControl, "no-cache")
	x.json(fasthttp.StatusOK, document)
	return nil
}

func (a *API) live(x *exchange) error {
	x.json(fasthttp.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// ready tells whether chat requests would be served now.
func (a *API) ready(x *exchange) error {
	reason := ""
	switch {
	case a.Stopping():
		reason = "stopping"
	case !a.Bus.Ready():
		reason = "NATS or its streams are not there"
	case len(a.Dispatchers()) == 0:
		reason = "no dispatcher is running"
	}
	if reason == "" {
		x.json(fasthttp.StatusOK, []byte(`{"status":"ready"}`))
		return nil
	}
	x.json(fasthttp.StatusServiceUnavailable, fmt.Appendf(nil, `{"status":"not ready","reason":%q}`, reason))
	return nil
}

// metrics shows the figures of this process.
func (a *API) metrics(x *exchange) error {
	if a.Gatherer == nil {
		return fault.New(fault.NotFound, "This process shows its metrics elsewhere")
	}
	families, err := a.Gatherer.Gather()
	if err != nil {
		return fmt.Errorf("gathering metrics: %w", err)
	}
	format := expfmt.NewFormat(expfmt.TypeTextPlain)
	x.Response.Header.SetContentType(string(format))
	enc := expfmt.NewEncoder(x.Response.BodyWriter(), format)
	for _, f := range families {
		if err := enc.Encode(f); err != nil {
			return fmt.Errorf("encoding metrics: %w", err)
		}
	}
	return nil
}
