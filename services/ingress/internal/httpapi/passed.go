package httpapi

import (
	"bytes"

	"hydrallm/shared/contract"
)

// forProviders are the headers of a surface that say something to a provider which speaks the same protocol.
var forProviders = map[contract.Surface][]string{
	contract.SurfaceMessages: {headerAnthropicVersion, "Anthropic-Beta"},
}

// headerAnthropicVersion is in every request of Anthropic's SDKs.
const headerAnthropicVersion = "Anthropic-Version"

// maxForProvider bounds one of them, in bytes: they travel in message headers.
const maxForProvider = 4096

// forProvider gives those of the request. Several of one name are one list.
func (x *exchange) forProvider() (list [][2]string) {
	for _, name := range forProviders[x.surface] {
		value := bytes.Join(x.Request.Header.PeekAll(name), []byte(","))
		if len(value) > 0 && len(value) <= maxForProvider && !bytes.ContainsFunc(value, unprintable) {
			list = append(list, [2]string{name, string(value)})
		}
	}
	return list
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }
