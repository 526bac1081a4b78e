package httpapi

import (
	"bytes"
	"strconv"
	"time"
	"unicode/utf8"

	"hydrallm/services/ingress/internal/markdown"
	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

// maxTerm bounds what is looked for, in bytes.
const maxTerm = 256

// terms reads parameters of the address, "" for those that are not there.
func (x *exchange) terms(into map[string]*string) error {
	for name, value := range into {
		text := x.QueryArgs().Peek(name)
		if len(text) > maxTerm {
			return invalid(name, openai.CodeInvalidValue, name+" is too long")
		}
		if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 { // no database has such text, and some fail
			return invalid(name, openai.CodeInvalidValue, name+" must be text in UTF-8")
		}
		*value = string(text)
	}
	return nil
}

// pageOf reads which part of a list is wanted.
func pageOf(x *exchange) (page query.Page, err error) {
	if page.Limit, err = limitOf(x, defaultLimit); err != nil {
		return page, err
	}
	for name, value := range map[string]*int64{"before": &page.Before, "after": &page.After} {
		text := x.QueryArgs().Peek(name)
		if len(text) == 0 {
			continue
		}
		if *value, err = strconv.ParseInt(string(text), 10, 64); err != nil || *value < 0 {
			return page, invalid(name, openai.CodeInvalidValue, name+" must be the number of an entry")
		}
	}
	return page, nil
}

// logsOf reads which events are wanted.
func logsOf(x *exchange) (q query.Logs, err error) {
	if q.Page, err = pageOf(x); err != nil {
		return q, err
	}
	return q, x.terms(map[string]*string{"level": &q.Level, "category": &q.Category, "request_id": &q.Request, "text": &q.Text})
}

// requestsOf reads which requests are wanted.
func requestsOf(x *exchange) (q query.Requests, err error) {
	if q.Page, err = pageOf(x); err != nil {
		return q, err
	}
	err = x.terms(map[string]*string{
		"request_id": &q.ID, "trace_id": &q.Trace, "session_id": &q.Session, "model": &q.Model, "provider": &q.Provider, "client": &q.Client, "status": &q.Status, "reason": &q.Reason,
	})
	switch q.Status {
	case "", query.RequestsAnswered, query.RequestsFailed, query.RequestsCancelled, query.RequestsSaved:
		return q, err
	}
	return q, invalid("status", openai.CodeInvalidValue, "status must be success, failed, cancelled or failover")
}

// timelineOf reads which requests are summed: those of a time that ends now.
func timelineOf(x *exchange) (q query.Timeline, err error) {
	span, points := time.Hour, time.Duration(60)
	for name, value := range map[string]*time.Duration{"range": &span, "step": &q.Step} {
		text := x.QueryArgs().Peek(name)
		if len(text) == 0 {
			continue
		}
		seconds, err := strconv.ParseInt(string(text), 10, 32)
		if err != nil || seconds <= 0 {
			return q, invalid(name, openai.CodeInvalidValue, name+" must be a number of seconds")
		}
		*value = time.Duration(seconds) * time.Second
	}
	q.To = time.Now()
	q.From = q.To.Add(-span)
	if q.Step == 0 {
		q.Step = span / points
	}
	return q, x.terms(map[string]*string{"model": &q.Model, "client": &q.Client})
}

// renderMarkdown gives HTML for the text of an answer.
func renderMarkdown(x *exchange) error {
	x.changesNothing = true
	body, err := upload.Read(x.RequestCtx, min(x.api.MaxBody, 2*markdown.MaxSize))
	if err != nil {
		return err
	}
	defer upload.Release(body)
	switch {
	case !rawjson.Valid(body): // nor is nothing
		return invalid("", openai.CodeInvalidJSON, "The request body is not valid JSON")
	case body[0] != '{' || len(rawjson.Get(body, "text")) == 0 || rawjson.Get(body, "text")[0] != '"':
		return invalid("text", openai.CodeInvalidType, "'text' must be a string")
	}
	html, err := markdown.Render([]byte(rawjson.Text(rawjson.Get(body, "text"))))
	if err != nil {
		return &fault.Fault{Kind: fault.TooLarge, Message: "The text is too long to be shown as Markdown", Param: "text", Cause: err}
	}
	return showJSON(x, map[string]string{"html": string(html)})
}
