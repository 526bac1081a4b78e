package discover

import (
	"context"
	"strings"

	"github.com/tidwall/gjson"

	family "hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// geminiCompatible lists the models behind Google's OpenAI-compatible endpoint. Its own list has no windows; the native one, which is
// beside it, has.
func (a asker) geminiCompatible(ctx context.Context) ([]modelindex.Model, error) {
	base, ok := without(a.source.URL, "/openai")
	if ok {
		models, err := a.gemini(ctx, base)
		if !refused(err) {
			return models, err
		}
	}
	models, err := a.openAI(ctx)
	if err != nil {
		return nil, err
	}
	var f found
	for _, m := range models {
		f.add(google(m))
	}
	return f.all(), nil
}

// gemini reads the native list, page by page.
func (a asker) gemini(ctx context.Context, base string) ([]modelindex.Model, error) {
	var f found
	query := param("pageSize", "1000")
	for range maxPages {
		root, err := a.get(ctx, under(base, "/models", query), googleKey)
		if err != nil {
			return nil, err
		}
		list, err := entries(root)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			if m, ok := readGemini(e); ok {
				f.add(m)
			}
		}
		next := root.Get("nextPageToken").Str
		if next == "" || f.full() {
			break
		}
		query = param("pageSize", "1000") + "&" + param("pageToken", next)
	}
	return f.all(), nil
}

// readGemini reads one model, unless it makes neither text nor vectors.
func readGemini(e gjson.Result) (modelindex.Model, bool) {
	m := modelindex.Model{
		ID: e.Get("name").Str, Name: e.Get("displayName").Str, Window: tokens(e, "inputTokenLimit"), Output: tokens(e, "outputTokenLimit"),
	}
	m.Can, m.Cannot = features(e)
	m = google(m)
	methods := e.Get("supportedGenerationMethods")
	if !methods.IsArray() || has(methods, "generateContent") {
		return m, true
	}
	m.Embedding = has(methods, "embedContent") || has(methods, "batchEmbedContents")
	return m, m.Embedding
}

// google takes the id as clients write it, and adds what Google's lists do not tell: all Gemini models take every kind of media and call functions.
func google(m modelindex.Model) modelindex.Model {
	m.ID = strings.TrimPrefix(m.ID, "models/")
	switch {
	case embeds(m.ID):
	case strings.HasPrefix(m.ID, "gemini-"):
		m.Can |= (contract.FeaturesMedia | contract.FeatureTools) &^ m.Cannot
	case !family.FamilyOf(m.ID).Calls():
		m.Cannot |= (contract.FeatureTools | contract.FeatureThinking) &^ m.Can
	}
	return m
}
