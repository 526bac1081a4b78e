package discover

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

const anthropicVersion = "2023-06-01"

// anthropic reads the list of Anthropic's API, page by page. The base URL may or may not end with the version.
func (a asker) anthropic(ctx context.Context) ([]modelindex.Model, error) {
	a.source.Header = a.source.Header.Clone()
	if a.source.Header == nil {
		a.source.Header = http.Header{}
	}
	if a.source.Header.Get("Anthropic-Version") == "" {
		a.source.Header.Set("Anthropic-Version", anthropicVersion)
	}
	var f found
	query := param("limit", "1000")
	for range maxPages {
		page, err := a.get(ctx, under(root(a.source.URL), "/v1/models", query), anthropicKey)
		if err != nil {
			return nil, err
		}
		list, err := entries(page)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			f.add(readAnthropic(e))
		}
		last := page.Get("last_id").Str
		if !page.Get("has_more").Bool() || last == "" || f.full() {
			break
		}
		query = param("limit", "1000") + "&" + param("after_id", last)
	}
	return f.all(), nil
}

// readAnthropic reads one model. All of them call tools, see images and read PDFs, unless the list says otherwise, and none hears.
func readAnthropic(e gjson.Result) modelindex.Model {
	m := modelindex.Model{
		ID: e.Get("id").Str, Name: e.Get("display_name").Str, Window: tokens(e, "max_input_tokens"), Output: tokens(e, "max_tokens"),
	}
	m.Can, m.Cannot = features(e)
	m.Can |= (contract.FeatureTools | contract.FeatureImages | contract.FeatureFiles) &^ m.Cannot
	m.Cannot |= contract.FeatureAudio &^ m.Can
	return m
}
