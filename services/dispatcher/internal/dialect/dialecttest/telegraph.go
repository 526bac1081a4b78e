// Package dialecttest has a dialect of its own, the least that one can be.
package dialecttest

import (
	"net/http"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// Telegraph is a protocol that no provider speaks: a sheet of paper with the words that are asked, and a tape with those of the answer.
type Telegraph struct{}

var _ dialect.Translator = Telegraph{}

// Authorize names the operator.
func (Telegraph) Authorize(h http.Header, key string) { h.Set("X-Operator", key) }

// Request puts the last message on a sheet.
func (Telegraph) Request(body []byte, stream bool) (dialect.Native, error) {
	if rawjson.Get(body, "tools") != nil {
		return dialect.Native{}, &openai.RequestError{Message: "A telegraph calls no tools.", Param: "tools"}
	}
	path := "/sheet"
	if stream {
		path = "/tape"
	}
	sheet := append([]byte(`{"to":`), rawjson.Get(body, "model")...)
	sheet = append(append(sheet, `,"words":`...), gjson.GetBytes(body, "messages.@reverse.0.content").Raw...)
	return dialect.Native{Path: path, Body: append(sheet, '}')}, nil
}

// Completion reads a sheet.
func (Telegraph) Completion(out *answer.Chunk, body []byte) bool {
	choice := out.Choose(0)
	choice.Role, choice.Content, choice.Finish = []byte(`"assistant"`), rawjson.Get(body, "words"), []byte(`"stop"`)
	return choice.Content != nil
}

// Events reads a tape.
func (Telegraph) Events() answer.Translator { return tape{} }

type tape struct{}

func (tape) Event(out *answer.Queue, e *openai.Event) bool {
	choice := out.Add(answer.Piece).Choose(0)
	if choice.Content = rawjson.Get(e.Data, "word"); choice.Content != nil {
		return true
	}
	choice.Finish = []byte(`"stop"`)
	out.Add(answer.Done)
	return false
}

func (tape) End(*answer.Queue) {}
