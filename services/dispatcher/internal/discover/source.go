package discover

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
)

// Source is a provider that can be asked for its models.
type Source struct {
	Provider string      // its id
	Vendor   string      // whose habits it has where that is known ("gemini", "openrouter", "lmstudio", ...), or ""
	Dialect  string      // openai | gemini | anthropic | ollama | opencode | openclaw
	URL      string      // base URL as the configuration has it, without a slash at the end; may have a query
	Header   http.Header // static headers of the operator; may be nil
}

// Fingerprint tells sources apart without showing their addresses, which may hold credentials.
func (s Source) Fingerprint() string {
	sum := sha256.Sum256([]byte(s.Dialect + " " + s.Vendor + " " + s.URL))
	return hex.EncodeToString(sum[:8])
}

// Rules are those for the models of this source; the lists are the operator's.
func (s Source) Rules(premium, free []string) Rules {
	return Rules{
		Gemini:  s.Vendor == "gemini" || s.Dialect == "gemini",
		Local:   s.Dialect == "ollama" || s.Vendor == "lmstudio" || s.Vendor == "llamacpp",
		Premium: premium, Free: free,
	}
}

// under gives an address below a base URL: path comes before a query that the base has, query is added to it.
func under(base, path, query string) string {
	address, own, _ := strings.Cut(base, "?")
	address = strings.TrimRight(address, "/") + path
	if own != "" && query != "" {
		own += "&"
	}
	if own += query; own != "" {
		address += "?" + own
	}
	return address
}

// without gives the base URL without the end of its path, such as "/v1". ok is false when the path does not end so.
func without(base, end string) (shorter string, ok bool) {
	address, query, found := strings.Cut(base, "?")
	address, ok = strings.CutSuffix(strings.TrimRight(address, "/"), end)
	if found {
		address += "?" + query
	}
	return address, ok
}

// root gives the base URL without the version at its end, below which engines have operations of their own.
func root(base string) string {
	shorter, _ := without(base, "/v1")
	return shorter
}

// authorize puts a key where a protocol wants it.
type authorize func(h http.Header, key string)

func bearer(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) }

func googleKey(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }

func anthropicKey(h http.Header, key string) { h.Set("X-Api-Key", key) }

// basic takes a password, or a user and a password with a colon between them.
func basic(h http.Header, key string) {
	user, password, found := strings.Cut(key, ":")
	if !found {
		user, password = "opencode", key
	}
	r := http.Request{Header: h}
	r.SetBasicAuth(user, password)
}

// nobody sends no key.
func nobody(http.Header, string) {}

// param makes one parameter of a query.
func param(name, value string) string { return name + "=" + url.QueryEscape(value) }
