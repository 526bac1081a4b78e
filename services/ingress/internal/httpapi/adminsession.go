package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

var errNoSession = fault.New(fault.NotFound, "There is no such session")

func sessionsOf(x *exchange) (q query.Sessions, err error) {
	q.Limit, err = limitOf(x, defaultLimit)
	return q, err
}

// sessionOf reads which session the path names.
func sessionOf(x *exchange) (query.SessionID, error) {
	if !saneSession(x.id) {
		return query.SessionID{}, errNoSession
	}
	return query.SessionID{ID: x.id}, nil
}

// cleanupOf reads how long a session that is cleaned up was not used; 0 stands for the setting.
func cleanupOf(x *exchange) (q query.Cleanup, err error) {
	text := x.QueryArgs().Peek("days")
	if len(text) == 0 {
		return q, nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return q, &fault.Fault{Kind: fault.Invalid, Message: "days must be a number", Param: "days"}
	}
	const most = 365
	return query.Cleanup{Days: min(max(n, 1), most)}, nil
}

// showMessages shows all messages of the session in the path.
func showMessages(x *exchange) error {
	session, err := sessionOf(x)
	if err != nil {
		return err
	}
	messages, err := x.api.messagesOf(session.ID)
	if err != nil {
		return err
	}
	return showJSON(x, messages)
}

// messagesOf gives all messages of a session.
func (a *API) messagesOf(id string) ([]query.Message, error) {
	all := []query.Message{}
	question := query.Messages{ID: id}
	for {
		page, err := query.GetMessages.Ask(a.Queries(), a.Bus, question)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Messages...)
		if !page.More || len(page.Messages) == 0 {
			return all, nil
		}
		question.After = page.Messages[len(page.Messages)-1].ID
	}
}

// imported is the answer to an import.
type imported struct {
	Status   string          `json:"status"`
	ID       string          `json:"session_id"`
	Info     query.Session   `json:"info"`
	Messages []query.Message `json:"messages"`
}

// importSession tells all about a session that is stored.
func importSession(x *exchange) error {
	a := x.api
	fields, err := a.texts(x, "session_id")
	if err != nil {
		return err
	}
	id := fields[0]
	switch {
	case id == "":
		return &fault.Fault{Kind: fault.Invalid, Param: "session_id", Code: openai.CodeMissing, Message: "'session_id' is missing"}
	case !saneSession(id):
		return errNoSession
	}
	info, err := query.GetSession.Ask(a.Queries(), a.Bus, query.SessionID{ID: id})
	if err != nil {
		return err
	}
	messages, err := a.messagesOf(id)
	if err != nil {
		return err
	}
	return showJSON(x, imported{Status: query.Success, ID: id, Info: info, Messages: messages})
}

// forkSession copies the session in the path up to a message.
func forkSession(x *exchange) error {
	session, err := sessionOf(x)
	if err != nil {
		return err
	}
	fields, err := x.api.texts(x, "message_id")
	if err != nil {
		return err
	}
	return pass(x, query.ForkSession, query.Fork{ID: session.ID, Message: fields[0]})
}

// texts reads members of a small JSON body, "" for those that are not there.
func (a *API) texts(x *exchange, names ...string) ([]string, error) {
	body, err := a.smallBody(x, smallBody)
	if err != nil {
		return nil, err
	}
	values := make([]string, len(names))
	for i, name := range names {
		value := rawjson.Get(body, name)
		switch {
		case value == nil || value[0] == 'n':
		case value[0] != '"':
			return nil, invalid(name, openai.CodeInvalidType, "'"+name+"' must be a string")
		default:
			values[i] = rawjson.Text(value)
		}
	}
	return values, nil
}

// smallBody reads a JSON body of at most so many bytes. It is {} for none.
func (a *API) smallBody(x *exchange, most int) ([]byte, error) {
	body, err := upload.Read(x.RequestCtx, min(a.MaxBody, most))
	if err != nil {
		return nil, err
	}
	defer upload.Release(body)
	if len(body) == 0 {
		return []byte("{}"), nil
	}
	if !rawjson.Valid(body) {
		return nil, invalid("", openai.CodeInvalidJSON, "The request body is not valid JSON")
	}
	return bytes.Clone(body), nil
}

// showJSON answers with a value.
func showJSON(x *exchange, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	x.json(fasthttp.StatusOK, body)
	return nil
}
