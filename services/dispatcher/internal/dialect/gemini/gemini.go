// Package gemini speaks the protocol of Google's Gemini API (generateContent) for clients that speak Chat Completions.
package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Translator puts chat completions into Gemini's protocol and back. The zero value is ready for use.
type Translator struct{}

var _ dialect.Translator = Translator{}

// Authorize sets the key in the header, since a key in the URL would end up in logs.
func (Translator) Authorize(h http.Header, key string) { h.Set("X-Goog-Api-Key", key) }

// Request translates a request. Members that Gemini has no word for are left out; what would change the meaning of the answer if it were
// left out, such as a part of a kind that can't be sent, is an error.
func (Translator) Request(body []byte, stream bool) (dialect.Native, error) {
	r, err := readRequest(body)
	if err != nil {
		return dialect.Native{}, err
	}
	model := strings.TrimPrefix(r.members["model"].Str, "models/")
	if model == "" {
		return dialect.Native{}, refuse("model", "must be the name of a model")
	}
	r.family = FamilyOf(model)
	for _, translate := range []func() error{r.messages, r.tools, r.generation} {
		if err := translate(); err != nil {
			return dialect.Native{}, err
		}
	}
	r.extensions()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r.native); err != nil {
		return dialect.Native{}, fmt.Errorf("encoding the request: %w", err)
	}
	path := modelPath(model)
	if stream {
		path += ":streamGenerateContent?alt=sse" // without alt it is a JSON array in pieces
	} else {
		path += ":generateContent"
	}
	return dialect.Native{Path: path, Body: bytes.TrimSpace(out.Bytes())}, nil
}

// modelPath is the path of a model, to which its operations are appended.
func modelPath(model string) string {
	return "/models/" + strings.ReplaceAll(url.PathEscape(model), ":", "%3A")
}

// request is a client's request on its way to native.
type request struct {
	members map[string]gjson.Result // of the client's body; a null counts as absent, and the last of a name counts
	family  Family
	native  nativeRequest
}

// nativeRequest is the body of generateContent.
type nativeRequest struct {
	Contents          []content       `json:"contents"`
	SystemInstruction *content        `json:"systemInstruction,omitempty"`
	Tools             []tool          `json:"tools,omitempty"`
	ToolConfig        *toolConfig     `json:"toolConfig,omitempty"`
	GenerationConfig  generation      `json:"generationConfig,omitzero"`
	SafetySettings    json.RawMessage `json:"safetySettings,omitempty"`
	CachedContent     json.RawMessage `json:"cachedContent,omitempty"`
}

func readRequest(body []byte) (*request, error) {
	if !rawjson.Valid(body) {
		return nil, &openai.RequestError{Message: "The request body is not valid JSON.", Code: openai.CodeInvalidJSON}
	}
	root := gjson.ParseBytes(body)
	if !root.IsObject() {
		return nil, &openai.RequestError{Message: "The request body must be a JSON object.", Code: openai.CodeInvalidType}
	}
	r := &request{members: map[string]gjson.Result{}}
	root.ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null {
			delete(r.members, key.Str)
		} else {
			r.members[key.Str] = value
		}
		return true
	})
	return r, nil
}

// refuse makes the error for a value that can't be translated. The reason continues a sentence that begins with the path of the value.
func refuse(param, reason string) error {
	return &openai.RequestError{Message: "'" + param + "' " + reason + ".", Param: param, Code: openai.CodeInvalidValue}
}

// quote gives a client's word for use in a message, not longer than a message should be.
func quote(word string) string {
	const longest = 64
	if len(word) > longest {
		word = strings.ToValidUTF8(word[:longest], "") + "..."
	}
	return "'" + word + "'"
}
