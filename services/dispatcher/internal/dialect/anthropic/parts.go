package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// block is a content block.
type block struct {
	kind string
	json []byte
}

// textBlock makes a block of a raw string. It has no kind if there is nothing but white space, which the API refuses.
func textBlock(raw, cache []byte) block {
	if blank(raw) {
		return block{}
	}
	return block{"text", typed("text").set("text", raw).set("cache_control", cache).end()}
}

// contentOf translates a content: null, a string, a part, or an array of parts. Blocks without anything in them are left out.
func contentOf(place string, content []byte, translate func(place string, part map[string][]byte) (block, error)) ([]block, error) {
	var blocks []block
	add := func(place string, raw []byte) error {
		b, err := translate(place, object(raw))
		if err == nil && b.kind != "" {
			blocks = append(blocks, b)
		}
		return err
	}
	switch {
	case len(content) == 0:
		return nil, nil
	case content[0] == '"':
		if b := textBlock(content, nil); b.kind != "" {
			blocks = append(blocks, b)
		}
		return blocks, nil
	case content[0] == '{':
		return blocks, add(place, content)
	case content[0] != '[':
		return nil, refuse(openai.CodeInvalidType, place, "must be a string or an array of parts")
	}
	n := 0
	for part := range rawjson.Elements(content) {
		if err := add(fmt.Sprintf("%s[%d]", place, n), part.Of(content)); err != nil {
			return nil, err
		}
		n++
	}
	return blocks, nil
}

// textPart translates a part where only text may be.
func textPart(place string, part map[string][]byte) (block, error) {
	switch kind := rawjson.Text(part["type"]); kind {
	case "text":
		return textBlock(part["text"], part["cache_control"]), nil
	case "refusal":
		return textBlock(part["refusal"], nil), nil
	default:
		return block{}, refuse(openai.CodeInvalidValue, place, "has type %q, but only text can be sent here to this provider", kind)
	}
}

// anyPart translates a part of a user or a tool.
func anyPart(place string, part map[string][]byte) (block, error) {
	switch kind := rawjson.Text(part["type"]); kind {
	case "text":
		return textBlock(part["text"], part["cache_control"]), nil
	case "image_url":
		return imagePart(place, part)
	case "file":
		return filePart(place, part)
	case "image", "document": // in Anthropic's own form
		return block{kind, typed(kind).set("source", part["source"]).set("title", part["title"]).set("context", part["context"]).
			set("citations", part["citations"]).set("cache_control", part["cache_control"]).end()}, nil
	default:
		return block{}, refuse(openai.CodeInvalidValue, place, "has type %q, which can't be sent to this provider", kind)
	}
}

// imagePart takes an image, whose URL may stand in an object or, from some clients, alone.
func imagePart(place string, part map[string][]byte) (block, error) {
	raw := part["image_url"]
	if !isString(raw) {
		raw = object(raw)["url"]
	}
	url := text(raw)
	var source []byte
	switch media, data, isData := cutDataURL(url); {
	case isWeb(url):
		source = typed("url").set("url", raw).end()
	case isData && imageTypes[media] != "":
		source = base64Source(imageTypes[media], data)
	default:
		return block{}, refuse(openai.CodeInvalidValue, place,
			"must be a JPEG, PNG, GIF or WebP image for this provider, as a data URL in base64 or an address with http or https")
	}
	return block{"image", typed("image").set("source", source).set("cache_control", part["cache_control"]).end()}, nil
}

var imageTypes = map[string]string{
	"image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/png": "image/png", "image/gif": "image/gif", "image/webp": "image/webp",
}

const pdfType = "application/pdf"

// filePart takes a file whose data are in the request. Files that were uploaded to OpenAI are out of reach.
func filePart(place string, part map[string][]byte) (block, error) {
	file := object(part["file"])
	raw := file["file_data"]
	url := text(raw)
	var source []byte
	switch media, data, isData := cutDataURL(url); {
	case isWeb(url):
		source = typed("url").set("url", raw).end()
	case isData && media == pdfType:
		source = base64Source(pdfType, data)
	case isData && strings.HasPrefix(media, "text/"):
		plain, err := base64.StdEncoding.AppendDecode(nil, data)
		if err != nil || !utf8.Valid(plain) {
			return block{}, refuse(openai.CodeInvalidValue, place, "must hold text in UTF-8 and base64")
		}
		source = typed("text").set("media_type", []byte(`"text/plain"`)).set("data", quote(plain)).end()
	case bytes.HasPrefix(url, []byte("JVBERi0")): // "%PDF-" in base64, from clients that leave the scheme out
		source = base64Source(pdfType, url)
	default:
		return block{}, refuse(openai.CodeInvalidValue, place,
			"must be a PDF or a text for this provider, with its data in 'file_data' as a data URL in base64")
	}
	return block{"document", typed("document").set("source", source).set("title", file["filename"]).set("cache_control", part["cache_control"]).end()}, nil
}

func base64Source(media string, data []byte) []byte {
	return typed("base64").set("media_type", quote(media)).set("data", quote(data)).end()
}

func isWeb(url []byte) bool { return hasScheme(url, "https://") || hasScheme(url, "http://") }

func hasScheme(url []byte, scheme string) bool {
	return len(url) > len(scheme) && strings.EqualFold(string(url[:len(scheme)]), scheme)
}

// cutDataURL takes a data URL in base64 apart. The media type comes in lower case, without parameters.
func cutDataURL(url []byte) (media string, data []byte, ok bool) {
	const scheme = "data:"
	if !hasScheme(url, scheme) {
		return "", nil, false
	}
	head, data, found := bytes.Cut(url[len(scheme):], []byte{','})
	params := strings.Split(strings.ToLower(string(head)), ";")
	if last := len(params) - 1; !found || last == 0 || strings.TrimSpace(params[last]) != "base64" {
		return "", nil, false
	}
	return strings.TrimSpace(params[0]), data, true
}
