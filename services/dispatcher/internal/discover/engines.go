package discover

import (
	"context"

	"github.com/tidwall/gjson"

	"hydrallm/shared/modelindex"
)

// askSlots corrects the window of a llama.cpp server: its list tells what the model was trained for, /props what a slot has. A server that
// routes between several models has no such number.
func (a asker) askSlots(ctx context.Context, models []modelindex.Model) {
	if len(models) != 1 {
		return
	}
	props, err := a.get(ctx, under(root(a.source.URL), "/props", ""), bearer)
	if err != nil {
		return // an old server, or one that keeps its properties to itself
	}
	if n := tokens(props, "default_generation_settings.n_ctx"); n > 0 {
		models[0].Window = n
	}
}

// lmStudio prefers the native list of LM Studio, which knows windows and kinds. Older versions have only the other one.
func (a asker) lmStudio(ctx context.Context) ([]modelindex.Model, error) {
	models, err := a.lmStudioNative(ctx)
	if refused(err) {
		return a.openAI(ctx)
	}
	return models, err
}

// askLMStudio completes a list of LM Studio's from its native one.
func (a asker) askLMStudio(ctx context.Context, models []modelindex.Model) {
	if more, err := a.lmStudioNative(ctx); err == nil {
		complete(models, more)
	}
}

func (a asker) lmStudioNative(ctx context.Context) ([]modelindex.Model, error) {
	root, err := a.get(ctx, under(root(a.source.URL), "/api/v1/models", ""), bearer)
	if err != nil {
		return nil, err
	}
	list, err := entries(root)
	if err != nil {
		return nil, err
	}
	var f found
	for _, e := range list {
		if m, ok := readEntry(e); ok {
			m.Window = loadedWindow(e, m.Window)
			f.add(m)
		}
	}
	return f.all(), nil
}

// loadedWindow is the largest window that an instance of the model runs with, which is often far below what the model could have.
func loadedWindow(e gjson.Result, possible int) int {
	largest := 0
	for _, n := range e.Get("loaded_instances.#.config.context_length").Array() {
		largest = max(largest, int(n.Num))
	}
	if largest > 0 && largest <= maxTokens {
		return largest
	}
	return possible
}
