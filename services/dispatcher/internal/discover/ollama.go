package discover

import (
	"context"
	"net/http"
	"sync"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
	"hydrallm/shared/openai/rawjson"
)

// Bounds of what is asked about single models.
const (
	maxShown = 200
	atOnce   = 4
)

// ollama reads the native list, which is beside the OpenAI-compatible endpoint of the base URL, and asks about the models of which it does
// not tell enough. The window is what the model can have, not what the server gives by default: the dialect asks for more when a request
// needs it. A server without the native list is asked for the other one.
func (a asker) ollama(ctx context.Context) ([]modelindex.Model, error) {
	tags, err := a.get(ctx, under(root(a.source.URL), "/api/tags", ""), bearer)
	if refused(err) {
		return a.openAI(ctx)
	}
	if err != nil {
		return nil, err
	}
	list, err := entries(tags)
	if err != nil {
		return a.openAI(ctx)
	}
	var f found
	var open []int // indexes of the models to ask about
	for _, e := range list {
		m := modelindex.Model{ID: text(e, "name", "model"), Window: tokens(e, "details.context_length")}
		if !describe(&m, e) || !f.add(m) {
			continue
		}
		if len(open) < maxShown && (m.Window == 0 || !e.Get("capabilities").IsArray()) {
			open = append(open, len(f.models)-1)
		}
	}
	return a.show(ctx, f.all(), open), nil
}

// describe takes in what a model can do, where that is told, and says whether it is of use.
func describe(m *modelindex.Model, e gjson.Result) bool {
	can := e.Get("capabilities")
	if !can.IsArray() || len(can.Array()) == 0 {
		m.Embedding = m.Embedding || embeds(m.ID)
		return true
	}
	chat := has(can, "completion")
	m.Can, m.Embedding = 0, has(can, "embedding") && !chat
	for _, word := range can.Array() {
		m.Can |= words[word.Str]
	}
	m.Cannot = (contract.FeaturesMedia | contract.FeatureTools | contract.FeatureThinking) &^ m.Can // it tells all
	return chat || m.Embedding
}

// show asks about single models, a few at a time. One about which the server tells nothing stays as it is.
func (a asker) show(ctx context.Context, models []modelindex.Model, open []int) []modelindex.Model {
	useless := make([]bool, len(models))
	free := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for _, i := range open {
		free <- struct{}{}
		wg.Go(func() {
			defer func() { <-free }()
			body := append(rawjson.AppendString([]byte(`{"model":`), models[i].ID), '}')
			call := upstream.Call{Method: http.MethodPost, URL: under(root(a.source.URL), "/api/show", ""), Body: body}
			shown, err := a.ask(ctx, call, bearer)
			if err != nil {
				return
			}
			useless[i] = !describe(&models[i], shown)
			if n := trainedFor(shown); n > 0 {
				models[i].Window = n
			}
		})
	}
	wg.Wait()
	var f found
	for i, m := range models {
		if !useless[i] {
			f.add(m)
		}
	}
	return f.all()
}

// trainedFor finds the context length in the description of a model, whose member is named for the architecture.
func trainedFor(shown gjson.Result) int {
	info := shown.Get("model_info")
	return tokens(info, gjson.Escape(info.Get(`general\.architecture`).Str+".context_length"))
}
