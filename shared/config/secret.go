package config

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
)

// Redacted stands in the place of a secret.
const Redacted = "[redacted]"

// Secret is text that must not be seen: every way to print or encode it gives a placeholder. It can't protect
// itself in unexported fields, whose methods fmt doesn't call, and as the key of a map in JSON.
type Secret string

// Reveal gives the text, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String gives the placeholder.
func (Secret) String() string { return Redacted }

// GoString gives the placeholder.
func (Secret) GoString() string { return Redacted }

// Format writes the placeholder for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(Redacted)) }

// LogValue gives the placeholder to log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText gives the placeholder to JSON, YAML and everything else that encodes text.
func (Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// ShortestSecret is the length in bytes of those that Redactor removes: shorter ones would garble ordinary words.
const ShortestSecret = 6

// Redactor takes secrets out of text, for which it puts Redacted. Where one begins with another, nothing is left of the longer one.
func Redactor(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range slices.SortedFunc(slices.Values(secrets), func(a, b string) int { return cmp.Compare(len(b), len(a)) }) {
		if len(s) >= ShortestSecret {
			pairs = append(pairs, s, Redacted)
		}
	}
	return strings.NewReplacer(pairs...)
}

// Mask shows which key is meant without giving it away: at most the first 8 characters, of keys below 16 characters at most 4, of keys
// below 8 none.
func Mask(key string) string {
	r := []rune(key)
	switch n := len(r); {
	case n < 8:
		return "..."
	case n < 16:
		return string(r[:4]) + "..."
	default:
		return string(r[:8]) + "..."
	}
}

// placeholders are words that documentation tells people to set as a key where none is needed. They are no secrets: to remove them from texts would
// only garble these.
var placeholders = []string{
	"ollama", "lm-studio", "lmstudio", "llama.cpp", "llamacpp", "llama-cpp", "vllm", "localai", "openclaw", "opencode", "empty", "none", "null", "no-key",
	"nokey", "no_key", "no-key-required", "sk-no-key-required", "not-needed", "not_needed", "notneeded", "not-required", "not-used", "unused", "dummy",
	"dummy-key", "fake", "fake-key", "placeholder", "anything", "changeme", "change-me", "api-key", "apikey", "your-api-key", "token", "local", "test",
}

// placeholder says whether a key is one of the words that stand for none.
func placeholder(key string) bool { return slices.Contains(placeholders, strings.ToLower(key)) }
