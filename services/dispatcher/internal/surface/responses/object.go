package responses

import (
	"strconv"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface/responses"
)

// id is that of the response.
func (r *Request) id() string { return contract.ResponseID(r.envelope.ID) }

// ownItems gives the input items of the request itself, without those that come from stored responses, and without text from the web.
func (r *Request) ownItems() []byte {
	items := r.Items()
	n, out := 0, []byte{'['}
	for span := range rawjson.Elements(items) {
		if n++; n <= r.envelope.Inherited || responses.IsContext(span.Of(items)) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, span.Of(items)...)
	}
	return append(out, ']')
}

// response gives the response as it is now.
func (a *Answer) response() []byte {
	r, env := a.request, a.request.envelope
	dst := append(append(append(make([]byte, 0, 1024), `{"id":"`...), r.id()...), `","object":"response","created_at":`...)
	dst = strconv.AppendInt(dst, env.ReceivedAt.Unix(), 10)
	dst = append(append(append(dst, `,"status":"`...), a.status...), `","completed_at":`...)
	if a.status == statusCompleted {
		dst = strconv.AppendInt(dst, a.completed.Unix(), 10)
	} else {
		dst = append(dst, "null"...)
	}
	dst = strconv.AppendBool(append(dst, `,"background":`...), r.Background)
	dst = append(dst, `,"error":`...)
	if a.fault != nil {
		dst = append(rawjson.AppendString(append(dst, `{"code":"server_error","message":`...), a.fault.Message), '}')
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"incomplete_details":`...)
	if reason := a.reason(); reason != "" && a.status == statusIncomplete {
		dst = append(append(append(dst, `{"reason":"`...), reason...), `"}`...)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(append(dst, `,"model":`...), a.head.Model...)
	dst = append(dst, `,"output":[`...)
	for i, it := range a.items {
		if i > 0 {
			dst = append(dst, ',')
		}
		if it.status == statusInProgress && a.status != statusInProgress {
			it.status = statusIncomplete
		}
		dst = a.appendItem(dst, it)
	}
	dst = r.AppendEcho(append(dst, ']'))
	dst = strconv.AppendBool(append(dst, `,"store":`...), r.stores)
	dst = a.appendUsage(append(dst, `,"usage":`...))
	if a.told.Session != "" {
		dst = rawjson.AppendString(append(dst, `,"session_id":`...), a.told.Session)
	}
	if a.told.Parts != nil {
		dst = append(append(dst, `,"parts":`...), a.told.Parts...)
	}
	return append(dst, '}')
}

// appendUsage appends what the response cost: null while it goes on, and zeros when the provider did not say, because clients want the numbers.
func (a *Answer) appendUsage(dst []byte) []byte {
	if a.status == statusInProgress || a.status == statusFailed && a.usage == nil {
		return append(dst, "null"...)
	}
	u := openai.ParseUsage(a.usage)
	prompt, completion := rawjson.Get(a.usage, "prompt_tokens_details"), rawjson.Get(a.usage, "completion_tokens_details")
	dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), u.Prompt, 10)
	dst = appendCount(append(dst, `,"input_tokens_details":{"cached_tokens":`...), rawjson.Get(prompt, "cached_tokens"))
	dst = appendCount(append(dst, `,"cache_write_tokens":`...), rawjson.Get(prompt, "cache_write_tokens"))
	dst = strconv.AppendInt(append(dst, `},"output_tokens":`...), u.Completion, 10)
	dst = appendCount(append(dst, `,"output_tokens_details":{"reasoning_tokens":`...), rawjson.Get(completion, "reasoning_tokens"))
	dst = strconv.AppendInt(append(dst, `},"total_tokens":`...), u.Total, 10)
	for _, m := range a.told.Usage {
		dst = append(append(append(append(dst, `,"`...), m.Name...), `":`...), m.Value...)
	}
	return append(dst, '}')
}

// appendCount appends a count of tokens; what is no number counts as 0.
func appendCount(dst, raw []byte) []byte {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		n = 0
	}
	return strconv.AppendInt(dst, n, 10)
}
