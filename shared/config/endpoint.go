package config

import (
	"regexp"
	"strings"
)

// endpoint matches an operation at the end of an address: of OpenAI's, Anthropic's, Ollama's and Gemini's protocol. No server has its API
// below one of these.
var endpoint = regexp.MustCompile(`/(chat/completions|completions|embeddings|responses|messages(/count_tokens|/batches)?)$` +
	`|/api/(chat|generate|embed|embeddings|tags|show)$|/models/[^/]+:([a-z]+GenerateContent|generateContent|[a-z]+mbedContents?|countTokens)$`)

// withoutEndpoint gives the address of a provider without the endpoint at its end, which is returned too; "" when there is none. Somebody has
// copied the address of an operation.
func (d Dialect) withoutEndpoint(address string) (base, cut string) {
	path, query, hasQuery := strings.Cut(address, "?")
	cut = endpoint.FindString(path)
	if cut == "" && d.Native != "" && strings.HasSuffix(path, d.Native) {
		cut = d.Native
	}
	if cut == "" {
		return address, ""
	}
	base = strings.TrimRight(strings.TrimSuffix(path, cut), "/")
	if hasQuery {
		base += "?" + query
	}
	return base, cut
}
