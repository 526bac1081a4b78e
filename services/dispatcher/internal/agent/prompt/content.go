package prompt

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// content reads what a message holds: a string, null, a part or an array of parts.
func (r *reader) content(param string, v gjson.Result) (string, error) {
	switch {
	case v.IsObject():
		return r.part(param, v)
	case !v.IsArray():
		return v.String(), nil
	}
	var text string
	for i, part := range v.Array() {
		t, err := r.part(fmt.Sprintf("%s[%d]", param, i), part)
		if err != nil {
			return "", err
		}
		text = paragraphs(text, t)
	}
	return text, nil
}

// part reads one part. A file becomes a note at its place in the text.
func (r *reader) part(param string, part gjson.Result) (string, error) {
	switch kind := part.Get("type").Str; kind {
	case "text", "input_text", "output_text", "":
		return part.Get("text").Str, nil
	case "refusal":
		return part.Get("refusal").Str, nil
	case "image_url":
		image := part.Get("image_url")
		if image.IsObject() {
			image = image.Get("url")
		}
		return r.file(param, "image", image.Str)
	case "input_audio":
		audio := part.Get("input_audio")
		return r.file(param, "audio", "data:audio/"+cmp.Or(audio.Get("format").Str, "wav")+";base64,"+audio.Get("data").Str)
	case "file":
		file := part.Get("file")
		return r.file(param, file.Get("filename").Str, file.Get("file_data").Str)
	default:
		return "", unsupported(param, fmt.Sprintf("An agent takes no part of the type %q.", kind))
	}
}

// file keeps a file. Only a data URL may be one: another would make the agent read what the client may not, such as a file of the machine.
func (r *reader) file(param, name, url string) (string, error) {
	mime, isData := dataType(url)
	if !isData {
		return "", unsupported(param, "An agent takes files and images only as data URLs with a type and base64 data.")
	}
	r.Files = append(r.Files, File{Type: mime, Name: cmp.Or(baseName(name), "file"), URL: url})
	return fmt.Sprintf("(attachment %d: %s)", len(r.Files), r.Files[len(r.Files)-1].Name), nil
}

// dataType gives the MIME type of a data URL in base64.
func dataType(url string) (string, bool) {
	head, _, found := strings.Cut(url, ",")
	if !found || len(head) < len("data:") || !strings.EqualFold(head[:len("data:")], "data:") || !strings.HasSuffix(head, ";base64") {
		return "", false
	}
	mime, _, _ := strings.Cut(head[len("data:"):], ";")
	return strings.ToLower(mime), strings.Contains(mime, "/")
}

// baseName is a name without folders, since it may become that of a file.
func baseName(name string) string {
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	return strings.TrimLeft(strings.Map(func(c rune) rune {
		if c < ' ' || strings.ContainsRune(`:*?"<>|`, c) {
			return -1
		}
		return c
	}, name), ".-")
}
