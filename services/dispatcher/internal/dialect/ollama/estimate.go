package ollama

import (
	"github.com/tidwall/gjson"
)

// What a request takes of the window.
const (
	bytesPerToken  = 3    // a fair upper guess: English has about four, Korean about three, and the JSON around the text counts as well
	tokensPerImage = 1024 // most local models take less
	usualAnswer    = 1024 // room for an answer whose length is not limited
	largestAnswer  = 8192 // clients ask for far more than they get, and room costs memory
)

// estimate guesses how many tokens a request and its answer take. 0 says that there is nothing to estimate.
func estimate(body []byte) int {
	root := gjson.ParseBytes(body)
	messages := root.Get("messages")
	if !messages.IsArray() {
		return 0
	}
	size, images := len(root.Get("tools").Raw)+len(root.Get("response_format").Raw), 0
	messages.ForEach(func(_, m gjson.Result) bool {
		size += len(m.Raw)
		parts := m.Get("content")
		if !parts.IsArray() && !parts.IsObject() {
			return true
		}
		for _, part := range parts.Array() { // one part alone is an array of one
			if part.IsObject() && part.Get("image_url").Exists() {
				images++
				size -= len(part.Raw)
			}
		}
		return true
	})
	answer := limit(root)
	if answer == 0 {
		answer = usualAnswer
	}
	return max(size, 0)/bytesPerToken + images*tokensPerImage + min(answer, largestAnswer)
}

// limit is the most tokens that the answer may have; 0 when that is not said.
func limit(root gjson.Result) int {
	if n := tokens(root.Get("max_completion_tokens")); n > 0 {
		return n
	}
	return tokens(root.Get("max_tokens"))
}
