package execute

import (
	"context"
	"io"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/embed"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/upstream"
)

// passVectors passes the answer to an embeddings request on, in the form that the client asked for.
func (a *attempt) passVectors(ctx context.Context, resp *upstream.Response, r io.Reader) classify.Verdict {
	body, err := readAll(r, resp.Length)
	if err != nil {
		return a.cutOff(ctx, resp.Context(), err)
	}
	name := ""
	if !a.job.Request.Decision.Configured {
		name = a.job.Request.Model // C-07
	}
	out, usage, err := embed.Answer(a.req.embed, body, name)
	if err != nil {
		if v := classify.Of(a.answerOf(resp, body)); v.Class != classify.Success {
			return v
		}
		return classify.Ended(err)
	}
	a.countUsage(stream.Usage(usage))
	return a.deliver(ctx, contentJSON, out)
}
