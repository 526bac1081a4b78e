package discover

import (
	"context"

	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// openCode lists what an OpenCode server can use: the models of the providers that are set up there, as "provider/model". The default
// model of each provider comes before its others.
func (a asker) openCode(ctx context.Context) ([]modelindex.Model, error) {
	root, err := a.get(ctx, under(a.source.URL, "/config/providers", ""), basic)
	if refused(err) {
		root, err = a.get(ctx, under(a.source.URL, "/provider", ""), basic)
	}
	if err != nil {
		return nil, err
	}
	providers := root.Get("providers")
	if !providers.Exists() {
		providers = root.Get("all")
	}
	if !providers.IsArray() {
		return nil, unusable("no list of providers")
	}
	var f found
	connected := root.Get("connected")
	for _, p := range providers.Array() {
		id := p.Get("id").Str
		if id == "" || connected.IsArray() && !has(connected, id) {
			continue
		}
		for _, first := range [...]bool{true, false} {
			addOpenCode(&f, p, text(root.Get("default"), gjson.Escape(id)), first)
		}
	}
	return f.all(), nil
}

// addOpenCode adds the models of a provider: the default one, or all others.
func addOpenCode(f *found, provider gjson.Result, standard string, first bool) {
	prefix := provider.Get("id").Str + "/"
	provider.Get("models").ForEach(func(key, e gjson.Result) bool {
		id := text(e, "id")
		if key.Type == gjson.String && key.Str != "" { // the models are an object by id
			id = key.Str
		}
		m, ok := readEntry(e)
		if ok && id != "" && (id == standard) == first {
			m.ID, m.Name = prefix+id, text(e, "name")
			switch stated(e.Get("attachment")) {
			case gjson.True:
				m.Can |= contract.FeatureImages
			case gjson.False:
				m.Cannot |= contract.FeatureImages
			default:
			}
			f.add(m)
		}
		return !f.full()
	})
}
