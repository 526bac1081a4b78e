package openai

import "hydrallm/shared/openai/rawjson"

// Completion is what matters about a whole answer (chat.completion).
type Completion struct {
	Valid  bool  // the body is one JSON object
	Failed bool  // it reports an error, under whatever status (C-42)
	Output bool  // a choice has text, reasoning, a refusal or a call (STR-12)
	Usage  Usage // zero when the body states none
}

// InspectCompletion looks at the body of a plain answer.
func InspectCompletion(body []byte) Completion {
	var c Chunk
	c.Parse(body)
	return Completion{Valid: c.Valid, Failed: !c.Error.IsZero(), Output: c.HasOutput(), Usage: ParseUsage(c.Usage.Of(body))}
}

// Messages gives the raw messages of a valid request body, or nil.
func Messages(body []byte) []byte {
	if raw := rawjson.Get(body, "messages"); len(raw) > 0 && raw[0] == '[' {
		return raw
	}
	return nil
}
