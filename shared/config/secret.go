package config

import (
	"fmt"
	"log/slog"
)

const redacted = "[redacted]"

// Secret is text that must not be seen: every way to print or encode it gives a placeholder.
type Secret string

// Reveal gives the text, for the one place that needs it.
func (s Secret) Reveal() string { return string(s) }

// String, GoString, Format, LogValue and MarshalText hide the text.
func (Secret) String() string { return redacted }

// GoString is for %#v.
func (Secret) GoString() string { return redacted }

// Format covers every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue is for log/slog.
func (Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText is for JSON and YAML.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Mask shows which key is meant without giving it away: at most the first 8 characters, of keys below 16 characters at most 4, of keys
// below 8 none.
func Mask(key string) string {
	switch n := len(key); {
	case n < 8:
		return "..."
	case n < 16:
		return key[:4] + "..."
	default:
		return key[:8] + "..."
	}
}
