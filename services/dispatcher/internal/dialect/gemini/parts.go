package gemini

import (
	"encoding/base64"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

type blob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"` // base64
}

type file struct {
	MimeType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// readParts translates the content of a message: a string, a part, an array of parts, or nothing. Empty texts are left out.
func readParts(at string, v gjson.Result) ([]part, error) {
	switch {
	case !v.Exists(), v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return texts(v.Str), nil
	case v.IsObject():
		return readPart(at, v)
	case !v.IsArray():
		return nil, refuse(at, "must be a string or an array of parts")
	}
	var parts []part
	for i, element := range v.Array() {
		more, err := readPart(at+"["+strconv.Itoa(i)+"]", element)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	return parts, nil
}

func texts(text string) []part {
	if text == "" {
		return nil
	}
	return []part{{Text: text}}
}

func readPart(at string, v gjson.Result) ([]part, error) {
	switch kind := v.Get("type").Str; kind {
	case "text":
		return texts(v.Get("text").Str), nil
	case "refusal":
		return texts(v.Get("refusal").Str), nil
	case "image_url":
		image := v.Get("image_url")
		if image.IsObject() {
			image = image.Get("url")
		}
		return media(at, image.Str, "image/png")
	case "input_audio":
		data, format := v.Get("input_audio.data").Str, v.Get("input_audio.format").Str
		if data == "" || format == "" {
			return nil, refuse(at, "must have data and a format")
		}
		return []part{{InlineData: &blob{MimeType: "audio/" + format, Data: data}}}, nil
	case "file":
		if data := v.Get("file.file_data").Str; data != "" {
			return media(at, data, mimeOf(v.Get("file.filename").Str))
		}
		return nil, refuse(at, "must hold the data of the file: the gateway stores none")
	default:
		return nil, refuse(at, "is a part of a kind that this model does not take: "+quote(kind))
	}
}

// media makes a part of a data URL, or of an address that Google can reach.
func media(at, address, mimeType string) ([]part, error) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "data":
		data, ok := dataURL(rest, mimeType)
		if !ok {
			return nil, refuse(at, "holds a data URL that can't be read")
		}
		return []part{{InlineData: data}}, nil
	case "https", "gs":
		return []part{{FileData: &file{MimeType: mimeOfURL(address), FileURI: address}}}, nil
	}
	return nil, refuse(at, "must hold a data URL or an https address")
}

// dataURL reads what follows "data:". Nearly all are in base64; others are put into it.
func dataURL(rest, mimeType string) (*blob, bool) {
	kind, data, found := strings.Cut(rest, ",")
	if !found {
		return nil, false
	}
	kind, isBase64 := strings.CutSuffix(kind, ";base64")
	if !isBase64 {
		text, err := url.PathUnescape(data)
		if err != nil {
			return nil, false
		}
		data = base64.StdEncoding.EncodeToString([]byte(text))
	}
	if stated, _, _ := strings.Cut(kind, ";"); stated != "" {
		mimeType = stated
	}
	return &blob{MimeType: mimeType, Data: data}, data != "" && mimeType != ""
}

// mimeTypes are those that Gemini takes, by the ending of a file.
var mimeTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".gif": "image/gif", ".heic": "image/heic",
	".heif": "image/heif", ".pdf": "application/pdf", ".txt": "text/plain", ".md": "text/plain", ".csv": "text/csv", ".json": "application/json",
	".mp3": "audio/mp3", ".wav": "audio/wav", ".mp4": "video/mp4", ".mov": "video/mov", ".webm": "video/webm",
}

// mimeOf guesses the type of a file by its name; "" if the name says nothing.
func mimeOf(name string) string { return mimeTypes[strings.ToLower(path.Ext(name))] }

func mimeOfURL(address string) string {
	if u, err := url.Parse(address); err == nil {
		return mimeOf(u.Path)
	}
	return ""
}
