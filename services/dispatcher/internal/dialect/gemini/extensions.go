package gemini

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// extensions passes on what clients can say to Gemini alone: extra_body.google, as Google's own compatible endpoint has it, and the safety
// settings. Google accepts names with underscores in what is inside. A thinking_config replaces what reasoning_effort says, because the two
// exclude each other.
func (r *request) extensions() {
	g, n := &r.native.GenerationConfig, &r.native
	known := map[string]*json.RawMessage{
		"thinking_config": &g.ThinkingConfig, "thinkingConfig": &g.ThinkingConfig,
		"response_modalities": &g.ResponseModalities, "responseModalities": &g.ResponseModalities,
		"image_config": &g.ImageConfig, "imageConfig": &g.ImageConfig,
		"speech_config": &g.SpeechConfig, "speechConfig": &g.SpeechConfig,
		"media_resolution": &g.MediaResolution, "mediaResolution": &g.MediaResolution,
		"cached_content": &n.CachedContent, "cachedContent": &n.CachedContent,
		"safety_settings": &n.SafetySettings, "safetySettings": &n.SafetySettings,
	}
	for _, name := range []string{"safety_settings", "safetySettings"} {
		if v := r.members[name]; v.Exists() {
			n.SafetySettings = json.RawMessage(v.Raw)
		}
	}
	r.members["extra_body"].Get("google").ForEach(func(key, value gjson.Result) bool {
		if to := known[key.Str]; to != nil && value.Type != gjson.Null {
			*to = json.RawMessage(value.Raw)
		}
		return true
	})
}
