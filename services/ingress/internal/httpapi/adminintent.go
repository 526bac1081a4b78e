package httpapi

import (
	"fmt"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

// addKeywords adds keywords that make a question one for the web. What is no text refuses the whole request.
func addKeywords(x *exchange) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	var q query.NewKeywords
	if q.Lang, err = needText(body, "lang"); err != nil {
		return err
	}
	keywords := rawjson.Get(body, "keywords")
	switch {
	case keywords == nil:
		return invalid("keywords", openai.CodeMissing, "'keywords' is missing")
	case keywords[0] != '[':
		return invalid("keywords", openai.CodeInvalidType, "'keywords' must be an array of strings")
	}
	for span := range rawjson.Elements(keywords) {
		raw := span.Of(keywords)
		if raw[0] != '"' {
			param := fmt.Sprintf("keywords[%d]", len(q.Keywords))
			return invalid(param, openai.CodeInvalidType, "'"+param+"' must be a string")
		}
		q.Keywords = append(q.Keywords, rawjson.Text(raw))
	}
	added, err := query.AddKeywords.Ask(x.api.Queries(), x.api.Bus, q)
	if err != nil {
		return err
	}
	x.note("lang", q.Lang)
	x.note("added", len(added.Added))
	return showJSON(x, added)
}

// learnKeywords takes keywords from a question that should have been one for the web.
func learnKeywords(x *exchange) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	text, err := needText(body, "query")
	if err != nil {
		return err
	}
	learned, err := query.LearnKeywords.Ask(x.api.Queries(), x.api.Bus, query.Missed{Query: text})
	if err != nil {
		return err
	}
	x.note("added", len(learned.Added))
	return showJSON(x, learned)
}

// needText reads a member that must be a text which is not blank.
func needText(body []byte, name string) (string, error) {
	raw := rawjson.Get(body, name)
	switch {
	case raw == nil:
		return "", invalid(name, openai.CodeMissing, "'"+name+"' is missing")
	case raw[0] != '"':
		return "", invalid(name, openai.CodeInvalidType, "'"+name+"' must be a string")
	}
	text := rawjson.Text(raw)
	if strings.TrimSpace(text) == "" {
		return "", invalid(name, openai.CodeInvalidValue, "'"+name+"' is blank")
	}
	return text, nil
}
