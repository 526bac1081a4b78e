package anthropic

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
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

func (b block) isThinking() bool { return b.kind == "thinking" || b.kind == "redacted_thinking" }

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
		b, err := translate(place, rawjson.Given(raw))
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
		return block{kind, typed(kind).set("source", relabeled(part["source"])).set("title", part["title"]).set("context", part["context"]).
			set("citations", part["citations"]).set("cache_control", part["cache_control"]).end()}, nil
	default:
		return block{}, refuse(openai.CodeInvalidValue, place, "has type %q, which can't be sent to this provider", kind)
	}
}

// imagePart takes an image, whose URL may stand in an object or, from some clients, alone.
func imagePart(place string, part map[string][]byte) (block, error) {
	raw := part["image_url"]
	if !isString(raw) {
		raw = rawjson.Given(raw)["url"]
	}
	url := text(raw)
	if isWeb(url) {
		return block{"image", typed("image").set("source", typed("url").set("url", raw).end()).set("cache_control", part["cache_control"]).end()}, nil
	}
	media, data, _ := cutDataURL(url)
	if kind, source := dataSource(media, data); source != nil {
		return block{kind, typed(kind).set("source", source).set("cache_control", part["cache_control"]).end()}, nil
	}
	return block{}, refuse(openai.CodeInvalidValue, place,
		"must be a JPEG, PNG, GIF or WebP image for this provider, as a data URL in base64 or an address with http or https")
}

// filePart takes a file whose data are in the request. Files that were uploaded to OpenAI are out of reach.
func filePart(place string, part map[string][]byte) (block, error) {
	file := rawjson.Given(part["file"])
	raw := file["file_data"]
	url := text(raw)
	kind, source := "document", []byte(nil)
	switch media, data, isData := cutDataURL(url); {
	case isWeb(url):
		source = typed("url").set("url", raw).end()
	case isData && strings.HasPrefix(media, "text/"):
		plain, err := base64.StdEncoding.AppendDecode(nil, data)
		if err != nil || !utf8.Valid(plain) {
			return block{}, refuse(openai.CodeInvalidValue, place, "must hold text in UTF-8 and base64")
		}
		source = typed("text").set("media_type", []byte(`"text/plain"`)).set("data", quote(plain)).end()
	case isData:
		kind, source = dataSource(media, data)
	default: // some clients leave the scheme out
		kind, source = dataSource("", url)
	}
	if source == nil {
		return block{}, refuse(openai.CodeInvalidValue, place,
			"must be a PDF, a text or an image for this provider, with its data in 'file_data' as a data URL in base64")
	}
	title := file["filename"]
	if kind == "image" {
		title = nil
	}
	return block{kind, typed(kind).set("source", source).set("title", title).set("cache_control", part["cache_control"]).end()}, nil
}

var imageTypes = map[string]string{
	"image/jpeg": "image/jpeg", "image/jpg": "image/jpeg", "image/png": "image/png", "image/gif": "image/gif", "image/webp": "image/webp",
}

const pdfType = "application/pdf"

// dataSource gives the source of a block, and its kind, for data in base64; nil when the API does not take them. What the data are counts more
// than the type that they are said to have: it is often wrong, and the API compares the two.
func dataSource(media string, data []byte) (kind string, source []byte) {
	if actual := typeOf(data); actual != "" {
		media = actual
	}
	switch {
	case len(data) == 0:
	case imageTypes[media] != "":
		return "image", base64Source(imageTypes[media], data)
	case media == pdfType:
		return "document", base64Source(pdfType, data)
	}
	return "", nil
}

// typeOf recognizes images and PDF by the first bytes of their base64; "" for anything else.
func typeOf(data []byte) string {
	const enough = 24 // characters, for what http.DetectContentType wants to see of these types
	var head [enough]byte
	n, _ := base64.StdEncoding.Decode(head[:], data[:min(len(data), enough)]) // an error leaves what came before it
	if media := http.DetectContentType(head[:n]); imageTypes[media] != "" || media == pdfType {
		return media
	}
	return ""
}

// relabeled corrects the type of an image in Anthropic's own form.
func relabeled(source []byte) []byte {
	in := rawjson.Given(source)
	if actual := typeOf(inner(in["data"])); actual != "" && actual != pdfType && !rawjson.Is(in["media_type"], actual) {
		return rawjson.AppendSet(nil, source, "media_type", quote(actual))
	}
	return source
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
