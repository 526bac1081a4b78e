package discover

import (
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
)

// flags are members that state with true or false, or with an object that may say "supported", whether a model has a feature. A name that begins
// with capabilities is one of an object of that name.
var flags = []struct {
	feature contract.Features
	names   []string
}{
	{contract.FeatureImages, []string{
		"capabilities.vision", "capabilities.input.image", "capabilities.image_input", "supports_vision", "supports_images", "supports_image_input",
	}},
	{contract.FeatureAudio, []string{"capabilities.audio", "capabilities.input.audio", "capabilities.audio_input", "supports_audio_input"}},
	{contract.FeatureFiles, []string{"capabilities.input.pdf", "capabilities.pdf_input", "supports_pdf_input"}},
	{contract.FeatureTools, []string{
		"capabilities.function_calling", "capabilities.trained_for_tool_use", "capabilities.tools", "capabilities.tool_use", "capabilities.toolcall",
		"tool_call", "supports_tools", "supports_function_calling",
	}},
	{contract.FeatureThinking, []string{"capabilities.reasoning", "capabilities.thinking", "reasoning", "thinking", "supports_reasoning"}},
}

// words are those of lists that name the features of a model.
var words = map[string]contract.Features{
	"vision": contract.FeatureImages, "image": contract.FeatureImages, "audio": contract.FeatureAudio, "file": contract.FeatureFiles,
	"tools": contract.FeatureTools, "reasoning": contract.FeatureThinking, "reasoning_effort": contract.FeatureThinking, "thinking": contract.FeatureThinking,
}

// features reads what the provider states of a model: what it has, and what it has not.
func features(e gjson.Result) (can, cannot contract.Features) {
	for _, f := range flags {
		for _, name := range f.names {
			switch stated(e.Get(name)) {
			case gjson.True:
				can |= f.feature
			case gjson.False:
				cannot |= f.feature
			default:
			}
		}
	}
	listed := func(list gjson.Result, all contract.Features) {
		if !list.IsArray() || len(list.Array()) == 0 {
			return
		}
		var found contract.Features
		for _, word := range list.Array() {
			found |= words[strings.ToLower(word.Str)]
		}
		can, cannot = can|found, cannot|all&^found
	}
	// Some read files for models that can't, so that a list of modalities without them says nothing.
	const media = contract.FeatureImages | contract.FeatureAudio
	for _, name := range [...]string{"architecture.input_modalities", "input_modalities", "modalities.input"} {
		listed(e.Get(name), media)
	}
	if in, _, found := strings.Cut(e.Get("architecture.modality").Str, "->"); found {
		for word := range strings.SplitSeq(in, "+") {
			can |= words[word]
		}
	}
	listed(e.Get("modalities"), 0)
	listed(e.Get("supported_parameters"), contract.FeatureTools|contract.FeatureThinking)
	listed(e.Get("supported_features"), 0)
	listed(e.Get("capabilities"), 0)
	return can, cannot &^ can
}

// stated gives True or False if a member says whether something is there, else Null.
func stated(v gjson.Result) gjson.Type {
	if v.IsObject() {
		if v = v.Get("supported"); !v.Exists() {
			return gjson.True
		}
	}
	if v.Type == gjson.True || v.Type == gjson.False {
		return v.Type
	}
	return gjson.Null
}
