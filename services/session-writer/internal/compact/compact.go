// Package compact makes summaries of conversations.
package compact

import (
	"context"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/openai/rawjson"
)

// Compressor shortens text.
type Compressor interface {
	// Compress gives a text of about so many tokens, of four characters each, that keeps what matters. One that is shorter already stays as it is.
	Compress(ctx context.Context, text string, tokens int) (string, error)
}

// Tokens is what a summary may take.
const Tokens = 800

const charactersPerToken = 4

// Label is what the message with a summary begins with.
const Label = "[CONVERSATION SUMMARY]"

// maxToolText is how much of the result of a tool goes into a summary, in bytes.
const maxToolText = 600

// Transcript gives messages, as Chat Completions has them, as lines of text. A summary keeps its lines; what the same role said twice stands there once.
func Transcript(bodies []string) string {
	var lines []string
	seen := map[string]bool{}
	for _, body := range bodies {
		raw := []byte(body)
		role := rawjson.Text(rawjson.Get(raw, "role"))
		text := strings.TrimSpace(textOf(raw))
		if role == "system" {
			text = strings.TrimSpace(strings.TrimPrefix(text, Label))
		}
		if role == "tool" {
			text = cut(text, maxToolText)
		}
		key := role + "\x00" + text
		if text == "" || seen[key] {
			continue
		}
		seen[key] = true
		switch role {
		case "system":
			lines = append(lines, text)
		case "user":
			lines = append(lines, "User: "+text)
		case "tool", "function":
			lines = append(lines, "Tool: "+text)
		default:
			lines = append(lines, "Assistant: "+text)
		}
	}
	return strings.Join(lines, "\n")
}

// Message is the message that stands for what was summarised.
func Message(summary string) string {
	return string(append(rawjson.AppendString([]byte(`{"role":"system","content":`), Label+"\n"+summary), '}'))
}

// Shorten gives a message of the history with a text of a third of its length. It is nil for one that stays as it is: a short one, one of a tool or
// with calls, one whose content is no plain text, or one that can't be shortened.
func Shorten(ctx context.Context, c Compressor, body string) []byte {
	raw := []byte(body)
	content, role := rawjson.Get(raw, "content"), rawjson.Text(rawjson.Get(raw, "role"))
	if len(content) == 0 || content[0] != '"' || role != "user" && role != "assistant" || rawjson.Get(raw, "tool_calls") != nil {
		return nil
	}
	text := rawjson.Text(content)
	n := utf8.RuneCountInString(text)
	if n < short {
		return nil
	}
	const part = 3
	less, err := c.Compress(ctx, text, n/charactersPerToken/part)
	if err != nil || len(less) >= len(text) {
		return nil
	}
	return rawjson.AppendSet(nil, raw, "content", rawjson.AppendString(nil, less))
}

// textOf is what a message says in words, with the calls that it makes.
func textOf(message []byte) string {
	var b strings.Builder
	content := rawjson.Get(message, "content")
	switch {
	case len(content) > 0 && content[0] == '"':
		b.WriteString(rawjson.Text(content))
	case len(content) > 0 && content[0] == '[':
		for span := range rawjson.Elements(content) {
			part := span.Of(content)
			if text := rawjson.Get(part, "text"); len(text) > 0 && text[0] == '"' {
				b.WriteString(rawjson.Text(text))
				b.WriteByte('\n')
			}
		}
	}
	calls := rawjson.Get(message, "tool_calls")
	for span := range rawjson.Elements(calls) {
		function := rawjson.Get(span.Of(calls), "function")
		b.WriteString("\ncalled " + rawjson.Text(rawjson.Get(function, "name")) + " " + cut(rawjson.Text(rawjson.Get(function, "arguments")), maxToolText))
	}
	return b.String()
}

// cut gives the beginning of a text, up to so many bytes and a whole character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "")
}
