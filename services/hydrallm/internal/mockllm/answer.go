package mockllm

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// answer is what the mock says: a function of the last message only.
func answer(req *request) string {
	return "You said: " + plain(req.Messages[len(req.Messages)-1].Content) + " - and this is the built-in mock upstream, which repeats what it hears."
}

// plain gives the text of a message, also when it comes in parts.
func plain(content any) string {
	switch c := content.(type) {
	case string:
		return c
	case []any:
		var texts []string
		for _, part := range c {
			if m, ok := part.(map[string]any); ok {
				if text, ok := m["text"].(string); ok {
					texts = append(texts, text)
				}
			}
		}
		return strings.Join(texts, " ")
	}
	return ""
}

// tokens counts words, which is near enough for a mock.
func tokens(req *request, said string) *usage {
	u := &usage{Completion: len(strings.Fields(said))}
	for _, m := range req.Messages {
		u.Prompt += len(strings.Fields(plain(m.Content)))
	}
	u.Total = u.Prompt + u.Completion
	return u
}

func identity(said string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(said)) // a hash takes everything
	return "chatcmpl-mock-" + strconv.FormatUint(h.Sum64(), 16)
}
