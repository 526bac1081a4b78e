package memory

import (
	"context"
	"unicode/utf8"

	"hydrallm/services/session-writer/internal/compress"
	"hydrallm/shared/openai/rawjson"
)

// shortPart: texts that are shortened get this part of their length.
const shortPart = 3

// Shorten gives a message of a history with its longer texts at about a third of their length, nil if nothing of it is to be shortened: calls and results of
// tools, and what is the system's, such as a summary, stay as they are. Everything but the texts stays byte for byte.
func Shorten(ctx context.Context, c Compressor, body []byte) ([]byte, error) {
	if role := rawjson.Text(rawjson.Get(body, "role")); role != "user" && role != "assistant" || rawjson.Get(body, "tool_calls") != nil {
		return nil, nil
	}
	content := rawjson.Get(body, "content")
	if text, err := shortened(ctx, c, content); err != nil || text != nil {
		return set(body, "content", text), err
	}
	edited, end, changed := []byte(nil), 0, false
	for span := range rawjson.Elements(content) {
		part := span.Of(content)
		text, err := shortened(ctx, c, rawjson.Get(part, "text"))
		if err != nil {
			return nil, err
		}
		if text != nil {
			edited = append(append(edited, content[end:span.Start]...), set(part, "text", text)...)
			end, changed = span.End, true
		}
	}
	if !changed {
		return nil, nil
	}
	return set(body, "content", append(edited, content[end:]...)), nil
}

func set(object []byte, name string, value []byte) []byte {
	if value == nil {
		return nil
	}
	return rawjson.AppendSet(nil, object, name, value)
}

// shortened gives a shorter JSON string, nil for one that stays as it is.
func shortened(ctx context.Context, c Compressor, raw []byte) ([]byte, error) {
	text := rawjson.Text(raw)
	short, err := c.Compress(ctx, text, compress.Tokens(text)/shortPart)
	if err != nil || utf8.RuneCountInString(short) >= utf8.RuneCountInString(text) {
		return nil, err
	}
	return rawjson.AppendString(nil, short), nil
}
