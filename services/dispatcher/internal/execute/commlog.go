package execute

import (
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
)

// CommLog keeps what goes to providers and comes back.
type CommLog interface {
	Enabled() bool
	Add(e query.CommEntry)
}

// listens says whether this call is to be kept.
func (a *attempt) listens() bool {
	c := a.run.exec.Comm
	return c != nil && c.Enabled()
}

// tellSent keeps that the call is made.
func (a *attempt) tellSent() {
	if a.kept = a.listens(); !a.kept {
		return
	}
	req := a.run.job.Request
	messages := messagesIn(a.run.job.Body)
	a.run.exec.Comm.Add(query.CommEntry{
		At: query.Time{Time: a.started}, Direction: query.CommRequest, Provider: a.link.Channel.Provider, RequestID: req.ID,
		Payload: query.CommPayload{Model: a.link.Model, Messages: &messages, Search: &req.Web.Search, Stream: &req.Stream},
	})
}

// messagesIn counts the messages, or items, of a request.
func messagesIn(body []byte) int {
	for _, name := range []string{"messages", "input"} {
		if list := gjson.ParseBytes(rawjson.Get(body, name)); list.IsArray() {
			return len(list.Array())
		}
	}
	return 0
}

// tellEnds notes how choices of the answer end.
func (a *attempt) tellEnds(chunks ...*answer.Chunk) {
	if !a.kept {
		return
	}
	for _, c := range chunks {
		for i := range c.Choices {
			if ch := &c.Choices[i]; ch.Finished() {
				a.ends = append(a.ends, rawjson.Text(ch.Finish))
			}
		}
	}
}

// tellCame keeps what came of the call.
func (a *attempt) tellCame(v classify.Verdict) {
	if !a.kept {
		return
	}
	e := query.CommEntry{
		At: query.Time{Time: time.Now()}, Direction: query.CommResponse, Provider: a.link.Channel.Provider, RequestID: a.run.job.Request.ID,
		Payload: query.CommPayload{
			Model: a.link.Model, FinishReasons: a.ends, Status: a.status,
			Usage: &query.CommUsage{Prompt: a.usage.Prompt, Completion: a.usage.Completion, Total: a.usage.Total},
		},
	}
	if v.Class != classify.Success {
		e.Payload.Error = string(v.Class)
	}
	a.run.exec.Comm.Add(e)
}
