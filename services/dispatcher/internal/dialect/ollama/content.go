package ollama

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
)

// content is what a message says: text as the inner part of a JSON string, and images in base64.
type content struct {
	text   []byte
	images []string
}

// readContent reads a string, null, one part, or an array of parts. Texts are joined by line feeds.
func readContent(v gjson.Result, at string) (c content, err error) {
	switch {
	case v.Type == gjson.Null:
		return c, nil
	case v.Type == gjson.String:
		c.join(v)
		return c, nil
	case v.IsObject():
		return c, c.add(v, at)
	case !v.IsArray():
		return c, &openai.RequestError{Message: "'" + at + "' must be a string or an array of parts.", Param: at, Code: openai.CodeInvalidType}
	}
	for i, part := range v.Array() {
		if err := c.add(part, fmt.Sprintf("%s[%d]", at, i)); err != nil {
			return c, err
		}
	}
	return c, nil
}

func (c *content) add(part gjson.Result, at string) error {
	if !part.IsObject() {
		return &openai.RequestError{Message: "'" + at + "' must be an object.", Param: at, Code: openai.CodeInvalidType}
	}
	kind := part.Get("type").Str
	switch {
	case kind == "text", kind == "" && part.Get("text").Exists():
		c.join(part.Get("text"))
	case kind == "refusal":
		c.join(part.Get("refusal"))
	case kind == "image_url", kind == "" && part.Get("image_url").Exists():
		image := part.Get("image_url")
		if image.IsObject() {
			image = image.Get("url")
		}
		data, err := imageData(image.Str, at+".image_url")
		if err != nil {
			return err
		}
		c.images = append(c.images, data)
	default:
		return &openai.RequestError{Message: "'" + at + "' is of a type that Ollama does not take.", Param: at, Code: openai.CodeInvalidValue}
	}
	return nil
}

func (c *content) join(text gjson.Result) {
	if text.Type != gjson.String {
		return
	}
	if len(c.text) > 0 {
		c.text = append(c.text, `\n`...)
	}
	c.text = append(c.text, text.Raw[1:len(text.Raw)-1]...)
}

// imageData gives the base64 text of a data URI. Ollama fetches nothing, and the gateway does not do it for a model's sake either.
func imageData(uri, at string) (string, error) {
	fail := func(message string) (string, error) {
		return "", &openai.RequestError{Message: "'" + at + "' " + message, Param: at, Code: openai.CodeInvalidValue}
	}
	head, data, found := strings.Cut(uri, ",")
	scheme, kind, _ := strings.Cut(head, ":")
	if !found || !strings.EqualFold(scheme, "data") {
		return fail("must be a data URI: Ollama fetches no images.")
	}
	kind, isBase64 := strings.CutSuffix(strings.ToLower(strings.TrimSpace(kind)), ";base64")
	if !isBase64 || kind != "" && !strings.HasPrefix(kind, "image/") {
		return fail("must be an image in base64.")
	}
	if plain, err := url.PathUnescape(data); err == nil {
		data = plain
	}
	data = strings.TrimRight(base64Text.Replace(data), "=")
	if _, err := base64.RawStdEncoding.DecodeString(data); err != nil || data == "" {
		return fail("is no valid base64.")
	}
	return data + "=="[:(4-len(data)%4)%4], nil
}

// base64Text turns the variants of base64 into the usual one.
var base64Text = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "", " ", "")
