package httpapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"hydrallm/services/ingress/internal/upload"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

const pathSessions = prefixAdmin + "/sessions"

// adminSessions serves the routes about stored sessions.
func (a *API) adminSessions(x *exchange, path string) error {
	rest := strings.TrimPrefix(strings.TrimPrefix(path, pathSessions), "/")
	if x.IsDelete() && saneSession(rest) { // it may be called like one of the routes
		x.leaveBody()
		return pass(x, query.DeleteSession, query.SessionID{ID: rest})
	}
	switch rest {
	case "":
		limit, err := limitOf(x)
		if err != nil {
			return err
		}
		return show(x, query.ListSessions, query.Sessions{Limit: limit})
	case "new":
		return act(x, query.NewSession, query.None{})
	case "cleanup":
		days, err := daysOf(x)
		if err != nil {
			return err
		}
		return act(x, query.CleanSessions, query.Cleanup{Days: days})
	case "import":
		return a.importSession(x)
	}
	id, what, _ := strings.Cut(rest, "/")
	if !saneSession(id) {
		return fault.New(fault.NotFound, "There is no such session")
	}
	switch what {
	case "":
		return x.allow("DELETE") // see above
	case "messages":
		if err := x.allow("GET, HEAD"); err != nil {
			return err
		}
		messages, err := a.messagesOf(id)
		if err != nil {
			return err
		}
		return showJSON(x, messages)
	case "fork":
		return a.forkSession(x, id)
	}
	return fault.New(fault.NotFound, "There is no such admin route")
}

// daysOf reads how long a session that is cleaned up was not used; 0 stands for the setting.
func daysOf(x *exchange) (int, error) {
	text := x.QueryArgs().Peek("days")
	if len(text) == 0 {
		return 0, nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil {
		return 0, &fault.Fault{Kind: fault.Invalid, Message: "days must be a number", Param: "days"}
	}
	const most = 365
	return min(max(n, 1), most), nil
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
func (a *API) importSession(x *exchange) error {
	if err := x.allow("POST"); err != nil {
		return err
	}
	fields, err := a.texts(x, "session_id")
	if err != nil {
		return err
	}
	id := fields[0]
	switch {
	case id == "":
		return &fault.Fault{Kind: fault.Invalid, Param: "session_id", Code: openai.CodeMissing, Message: "'session_id' is missing"}
	case !saneSession(id):
		return fault.New(fault.NotFound, "There is no such session")
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

func (a *API) forkSession(x *exchange, id string) error {
	if err := x.allow("POST"); err != nil {
		return err
	}
	fields, err := a.texts(x, "message_id")
	if err != nil {
		return err
	}
	return pass(x, query.ForkSession, query.Fork{ID: id, Message: fields[0]})
}

// texts reads members of a small JSON body, "" for those that are not there.
func (a *API) texts(x *exchange, names ...string) ([]string, error) {
	const most = 64 << 10
	body, err := upload.Read(x.RequestCtx, min(a.MaxBody, most))
	if err != nil {
		return nil, err
	}
	defer upload.Release(body)
	values := make([]string, len(names))
	if len(body) == 0 {
		return values, nil
	}
	if !rawjson.Valid(body) {
		return nil, invalid("", openai.CodeInvalidJSON, "The request body is not valid JSON")
	}
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

// showJSON answers with a value.
func showJSON(x *exchange, value any) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	x.json(fasthttp.StatusOK, body)
	return nil
}
