package compat

import (
	"crypto/sha256"

	"hydrallm/shared/openai/rawjson"
)

// idRule says which ids of tool calls a vendor takes. Histories hold the ids of whoever made the call.
type idRule struct {
	exact int // letters and digits that an id must consist of; 0 = anything
	most  int // characters of an id; 0 = any number
}

const (
	alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	longID       = 24 // length of an id that stands for one that is too long
)

// replace gives the id that goes to the vendor in place of a raw JSON string, or "" if that may stay. Equal ids have equal replacements, so
// that calls and their results still belong together, and so do the requests of a conversation.
func (r idRule) replace(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	switch {
	case r.exact > 0 && (len(inner) != r.exact || !isAlphanumeric(inner)):
		return shortID(rawjson.Text(raw), r.exact)
	case r.most > 0 && len(inner) > r.most:
		return shortID(rawjson.Text(raw), longID)
	}
	return ""
}

func isAlphanumeric(text []byte) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// shortID makes an id of n letters and digits out of a long or odd one.
func shortID(id string, n int) string {
	sum := sha256.Sum256([]byte(id))
	out := make([]byte, n)
	for i := range out {
		out[i] = alphanumeric[int(sum[i])%len(alphanumeric)]
	}
	return string(out)
}
