package discover

import (
	"context"

	"github.com/tidwall/gjson"

	"hydrallm/shared/modelindex"
)

// openAI reads the list that OpenAI's protocol has. Engines that say who they are in it are asked for what the list does not tell.
func (a asker) openAI(ctx context.Context) ([]modelindex.Model, error) {
	root, err := a.get(ctx, under(a.source.URL, "/models", ""), bearer)
	if err != nil {
		return nil, err
	}
	list, err := entries(root)
	if err != nil {
		return nil, err
	}
	models := readEntries(list)
	switch owner := ownerOf(list); {
	case owner == "llamacpp":
		a.askSlots(ctx, models)
	case owner == "organization_owner": // LM Studio
		a.askLMStudio(ctx, models)
	case a.source.Vendor == "cerebras":
		a.askCerebras(ctx, models)
	}
	return models, nil
}

// readEntries reads a list. An alias is a further id of the same model (Mistral).
func readEntries(list []gjson.Result) []modelindex.Model {
	var f found
	for _, e := range list {
		m, ok := readEntry(e)
		if !ok {
			continue
		}
		f.add(m)
		for _, alias := range e.Get("aliases").Array() {
			m.ID = alias.Str
			f.add(m)
		}
	}
	return f.all()
}

func ownerOf(list []gjson.Result) string {
	if len(list) == 0 {
		return ""
	}
	return list[0].Get("owned_by").Str
}

// openRouter asks about the key before the list, because the list is there for everyone and so says nothing about the key.
func (a asker) openRouter(ctx context.Context) ([]modelindex.Model, error) {
	if a.key != "" {
		if _, err := a.get(ctx, under(a.source.URL, "/key", ""), bearer); err != nil {
			return nil, err
		}
	}
	return a.openAI(ctx)
}

// askCerebras completes the models of an account, whose list has no windows, from the public list. It is a help, no more: an error of it
// is not the key's.
func (a asker) askCerebras(ctx context.Context, models []modelindex.Model) {
	base, ok := without(a.source.URL, "/v1")
	if !ok {
		return
	}
	root, err := a.get(ctx, under(base, "/public/v1/models", ""), nobody)
	if err != nil {
		return
	}
	if list, err := entries(root); err == nil {
		complete(models, readEntries(list))
	}
}

// complete adds what another list knows of the same models.
func complete(models, more []modelindex.Model) {
	byID := make(map[string]modelindex.Model, len(more))
	for _, m := range more {
		byID[m.ID] = m
	}
	for i := range models {
		m, known := byID[models[i].ID]
		if !known {
			continue
		}
		if m.Window > 0 {
			models[i].Window = m.Window
		}
		if m.Output > 0 {
			models[i].Output = m.Output
		}
		if models[i].Name == "" {
			models[i].Name = m.Name
		}
		models[i].Can |= m.Can
		models[i].Cannot = (models[i].Cannot | m.Cannot) &^ models[i].Can
		models[i].Embedding = models[i].Embedding || m.Embedding
	}
}
