package openai

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Servers written in Go, or in other languages with such readers, read names of members in any case, and the last of those that are equal
// then. A member whose name is another spelling of one that the gateway reads would mean something to them and nothing to the gateway.

// Names that the gateway or one of its dialects reads, by the object they belong to.
var (
	requestNames = []string{
		"model", "messages", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens", "prompt", "input", "encoding_format", "dimensions",
		"tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "response_format", "reasoning_effort", "reasoning", "thinking",
		"temperature", "top_p", "top_k", "stop", "seed", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias",
		"modalities", "user", "metadata", "store", "usage", "service_tier",
		"session_id", "has_search", "auto_web_fetch", "web_fetch", "compress_context", "fork_from",
	}
	streamOptionsNames = []string{"include_usage"}
	messageNames       = []string{"role", "content", "tool_calls", "tool_call_id", "function_call", "name", "reasoning_content", "refusal"}
	partNames          = []string{"type", "text", "image_url", "input_audio", "file", "refusal", "thinking"}
	toolCallNames      = []string{"function", "id", "type", "index"}
	functionNames      = []string{"name", "arguments"}
)

// CodeAmbiguous is the code of a RequestError about a name that others read as another one.
const CodeAmbiguous = "ambiguous_parameter"

// otherSpelling refuses the current member if its name is another spelling of one of the known ones. at is the path of the object, with a dot
// at its end, or ""; # in it stands for message, the index of a message.
func (r *requestScan) otherSpelling(known []string, at string, message int) {
	if other := OtherSpelling(r.s.Key(), known); other != "" {
		r.ambiguous(strings.Replace(at, "#", strconv.Itoa(message), 1), r.s.Key(), other)
	}
}

// OtherSpelling gives the known name of which name is another spelling; "" = it is none.
func OtherSpelling(name []byte, known []string) string {
	if !unusual(name) {
		return ""
	}
	for _, k := range known {
		if bytes.EqualFold(name, []byte(k)) && string(name) != k {
			return k
		}
	}
	return ""
}

func (r *requestScan) ambiguous(at string, name []byte, known string) {
	param := at + string(name)
	r.fail(CodeAmbiguous, param, fmt.Sprintf("'%s' is '%s' to servers that read names in any case: write '%s%s'.", param, known, at, known))
}

// unusual says whether a name can be another spelling of one in lower case: Go's readers fold like bytes.EqualFold, so that it may also hold
// U+017F for an s and U+212A for a k.
func unusual(name []byte) bool {
	return slices.ContainsFunc(name, func(c byte) bool { return 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf })
}

// checkSpellings refuses two top-level members whose names differ only in case: a patch would change one of them, and the upstream could act on
// the other.
func (r *requestScan) checkSpellings() {
	if !slices.ContainsFunc(r.members, func(m member) bool { return unusual(m.name) }) {
		return
	}
	seen := make(map[string]string, len(r.members))
	for i := range r.members {
		name := r.members[i].name
		key := string(bytes.Map(fold, name))
		if first, ok := seen[key]; ok && first != string(name) {
			r.ambiguous("", name, first)
			return
		}
		seen[key] = string(name)
	}
}

// fold gives the same for all runes that are equal in any case.
func fold(r rune) rune {
	least := r
	for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
		least = min(least, other)
	}
	return least
}
