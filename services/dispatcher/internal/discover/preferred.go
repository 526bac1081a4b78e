package discover

import (
	"strings"

	"hydrallm/shared/modelindex"
)

// lastResort is asked for when nothing that was discovered can chat.
const lastResort = "llama3"

// families are the models that an agent prefers, the best first.
var families = []string{"llama", "qwen", "mistral", "gemma", "phi", "deepseek", "yi", "wizardlm"}

// Preferred gives the model that an agent is asked for: the requested one if it was discovered and can chat, else one of the
// preferred families, else the first that can chat, else a name that may be right. The tag "latest" makes no difference. The id comes in
// the spelling of the provider (B-14); requested may be empty. ok is false for the
// name that is only a guess.
func Preferred(models []modelindex.Model, requested string) (id string, ok bool) {
	chatting := func(accept func(id string) bool) (string, bool) {
		for _, m := range models {
			if !m.Embedding && Chats(m.ID) && accept(m.ID) {
				return m.ID, true
			}
		}
		return "", false
	}
	if requested != "" {
		for _, same := range [...]func(string) bool{
			func(id string) bool { return id == requested },
			func(id string) bool { return strings.EqualFold(untagged(id), untagged(requested)) },
		} {
			if id, ok := chatting(same); ok {
				return id, true
			}
		}
	}
	for _, family := range families {
		if id, ok := chatting(func(id string) bool { return ofFamily(id, family) }); ok {
			return id, true
		}
	}
	if id, ok := chatting(func(string) bool { return true }); ok {
		return id, true
	}
	return lastResort, false
}

func untagged(id string) string { return strings.TrimSuffix(strings.ToLower(id), ":latest") }

// ofFamily says whether a word of the id begins with the name, so that "dolphin" is no "phi".
func ofFamily(id, family string) bool {
	for word := range wordsOf(strings.ToLower(id)) {
		if strings.HasPrefix(word, family) {
			return true
		}
	}
	return false
}
