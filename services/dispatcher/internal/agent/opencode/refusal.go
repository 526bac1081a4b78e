package opencode

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// refusalLimit is the time that a refusal may take.
const refusalLimit = 5 * time.Second

// refusal is the answer to what OpenCode asks: no. The turn stands still without it.
type refusal struct {
	id       string
	question bool
}

// refuse answers. Servers that don't know the newer operation for permissions have the older one.
func (s server) refuse(ctx context.Context, session string, r refusal) {
	ctx, cancel := context.WithTimeout(ctx, refusalLimit)
	defer cancel()
	id := url.PathEscape(r.id)
	if r.question {
		_, _ = s.post(ctx, "/question/"+id+"/reject", nil) // if it is lost, the limits of the call end the turn
		return
	}
	a, err := s.post(ctx, "/session/"+url.PathEscape(session)+"/permissions/"+id, []byte(`{"response":"reject"}`))
	if err == nil && a.status == http.StatusNotFound {
		_, _ = s.post(ctx, "/permission/"+id+"/reply", []byte(`{"reply":"reject"}`)) // as above
	}
}
