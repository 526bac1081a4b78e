package classify

import (
	"bytes"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

const statusClientClosed = 499

// Answer is what an upstream sent.
type Answer struct {
	Provider string      // vendor or dialect where it is known ("gemini", "groq", "anthropic", ...), else ""
	Status   int         // HTTP status
	Header   http.Header // may be nil
	Body     []byte      // the body or its beginning; in a stream the data of one event
	Event    bool        // Body is the data of one event of a stream that began with 2xx
	At       time.Time   // when it came; dates in hints count from here. Zero means now
}

// Of gives the verdict on an answer. A 2xx answer is a success unless its body says otherwise: error objects in all their shapes, HTML, no
// choices, nothing at all (R-100, C-42). Of an event only an error is noticed; that a stream ends too early is for its reader to see.
func Of(a Answer) Verdict {
	var p problem
	ok := a.Status/100 == 2
	if ok && a.Event && !suspect(a.Body) {
		return Verdict{Class: Success}
	}
	if ok && !a.Event {
		if reason, bad := a.unreadable(); bad {
			return a.verdict(Upstream, &p, reason)
		}
	}
	if !ok || suspect(a.Body) {
		p = readProblem(a.Body)
	}
	if !ok || p.found {
		return a.verdict(a.class(&p), &p, "")
	}
	if c, reason, found := unfinished(a.Body); found {
		return a.verdict(c, &p, reason)
	}
	if !a.Event && noChoices(a.Body) {
		return a.verdict(Upstream, &p, "no choices")
	}
	return Verdict{Class: Success}
}

// markers are byte sequences of which at least one is in every 2xx body that holds an error. Inside a JSON text the quotes would be escaped.
var markers = [...][]byte{
	[]byte(`"error"`), []byte(`"message"`), []byte(`"base_resp"`), []byte(`"errors"`), []byte(`"detail"`),
	[]byte("insufficient_system_resource"), []byte("_FUNCTION_CALL"), []byte("_TOOL_CALL"), []byte("MALFORMED_"), []byte("_THOUGHT_SIGNATURE"), []byte(`"OTHER"`),
}

// suspect is a cheap test that lets sound events pass without reading their JSON.
func suspect(body []byte) bool {
	for _, m := range markers {
		if bytes.Contains(body, m) {
			return true
		}
	}
	return false
}

// unreadable tells whether a 2xx body can't be an answer, whatever it says.
func (a Answer) unreadable() (reason string, bad bool) {
	if a.html() {
		return "html", true
	}
	return "empty answer", len(bytes.TrimSpace(a.Body)) == 0
}

func noChoices(body []byte) bool {
	choices := gjson.GetBytes(jsonPart(body), "choices")
	return choices.Exists() && !choices.Get("0").Exists()
}

// unfinished finds the finish reasons that say that there is no answer.
func unfinished(body []byte) (c Class, reason string, found bool) {
	if !suspect(body) {
		return "", "", false
	}
	root := gjson.ParseBytes(jsonPart(body))
	for _, r := range root.Get("choices.#.finish_reason").Array() {
		if r.Str == "error" || r.Str == "insufficient_system_resource" {
			return Upstream, "finish reason " + r.Str, true
		}
	}
	switch r := root.Get("candidates.0.finishReason").Str; r {
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "MISSING_THOUGHT_SIGNATURE", "OTHER":
		return BadOutput, "finish reason " + r, true
	}
	return "", "", false
}

// html tells whether the body is a page. A JSON body that is labelled as one is read as JSON.
func (a Answer) html() bool {
	body := bytes.TrimSpace(a.Body)
	head := bytes.ToLower(body[:min(len(body), len("<!doctype html"))])
	if bytes.HasPrefix(head, []byte("<!doctype html")) || bytes.HasPrefix(head, []byte("<html")) {
		return true
	}
	return strings.Contains(a.Header.Get("Content-Type"), "text/html") && jsonPart(body) == nil
}

// stated is the status that counts: of HTTP, or where that is 2xx the one inside the body; 0 when there is none.
func (a Answer) stated(p *problem) int {
	if a.Status/100 == 2 {
		return p.status
	}
	return a.Status
}

// class decides by status and code first, then by text.
func (a Answer) class(p *problem) Class {
	if c, ok := baseCodes[p.base]; ok {
		return c
	}
	status := a.stated(p)
	switch status {
	case 0:
		return unstated(p)
	case http.StatusUnauthorized:
		return Auth
	case http.StatusPaymentRequired:
		return a.unpaid(p)
	case http.StatusForbidden:
		return a.forbidden(p)
	case http.StatusGone:
		return Model // it has reached the end of its life
	case http.StatusNotFound:
		// A path that the upstream does not know is a channel that can't serve the model, as much as an unknown model is.
		if p.name == "NotFoundError" && strings.HasPrefix(p.message, "Session not found") {
			return BadOutput // OpenCode forgot its session: a new one will do
		}
		if incapable(p.message) {
			return Incapable
		}
		return Model
	case http.StatusPreconditionFailed: // of the account, since a request has none
		return suspended(p)
	case http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict, http.StatusMisdirectedRequest, http.StatusFailedDependency,
		http.StatusTooEarly, 498, statusClientClosed: // of the way there; 498, 499: Groq's own
		return Upstream
	case http.StatusRequestEntityTooLarge:
		return Size
	case http.StatusTooManyRequests:
		return throttled(p)
	}
	if status < 400 || status > 499 {
		return Upstream
	}
	return refused(p)
}

// unstated is the class of an error without any status: an error event, or an error in a 2xx body.
func unstated(p *problem) Class {
	if c, ok := coded(p); ok {
		return c
	}
	if c, ok := byCode(generic, p); ok {
		return c
	}
	return Upstream
}

// refused is the class of a 400, a 422 and the like.
func refused(p *problem) Class {
	if c, ok := coded(p); ok {
		return c
	}
	if c, ok := byOpening(p); ok {
		return c
	}
	switch {
	case tooLong(p.message):
		return Size
	case incapable(p.message):
		return Incapable
	case noModel(p):
		return Model
	}
	return Client
}

// suspended is the class of a 412, with which some say that an account is closed.
func suspended(p *problem) Class {
	if c, ok := coded(p); ok {
		return c
	}
	switch {
	case containsAny(p.message, "spending", "spend limit", "billing", "balance", "credit", "quota"):
		return Quota
	case containsAny(p.message, "suspended", "disabled", "deactivated", "restricted"):
		return Auth
	}
	return Upstream
}

func coded(p *problem) (Class, bool) {
	c, ok := byCode(specific, p)
	if c == Rate {
		c = throttled(p)
	}
	return c, ok
}

func (a Answer) unpaid(p *problem) Class {
	if p.obj.Get("metadata.limit_source").Str == "openrouter_in_flight_budget" && a.Header.Get("Retry-After") != "" {
		return Rate
	}
	return Payment
}

func (a Answer) forbidden(p *problem) Class {
	switch {
	case a.html():
		return Upstream // a challenge page of a CDN
	case p.obj.Get("metadata.reasons").Exists(), p.obj.Get("metadata.flagged_input").Exists():
		return Client // moderation of the prompt
	case containsAny(p.message, "key limit exceeded"):
		return Quota // OpenRouter: the budget of the key
	case p.reason() == "API_KEY_INVALID", p.reason() == "CONSUMER_SUSPENDED",
		containsAny(p.message, "reported as leaked", "has been suspended"):
		return Auth
	}
	return Forbidden
}

// throttled tells the meanings of a 429 apart: a brake of the provider, a wrong key that was tried too often, a budget, a short window.
func throttled(p *problem) Class {
	switch c, _ := byCode(specific, p); {
	case c == Upstream, ofUpstream(p):
		return Upstream
	case c == Auth, containsAny(p.message, "failed authentication attempts"):
		return Auth
	case strings.HasPrefix(p.message, "Request too large"):
		return Size // more than the limit of a whole minute: no wait helps, and the key is innocent
	case c == Quota, perDay(p), spent(p):
		return Quota
	}
	return Rate
}

// ofUpstream tells whether an aggregator passes on a limit of the provider behind it; its own key is innocent then.
func ofUpstream(p *problem) bool {
	return p.obj.Get("metadata.provider_name").Str != "" || containsAny(p.message, "temporarily rate-limited upstream")
}

// quotaIDs are the names of the limits that Google says were hit.
func quotaIDs(p *problem) []gjson.Result {
	if d := p.obj.Get("details"); d.IsArray() {
		return d.Get("#.violations|@flatten|#.quotaId").Array()
	}
	return nil
}

// googlePerDay tells whether a daily limit of Google was hit. It ends at midnight in California, whatever else the answer says.
func googlePerDay(p *problem) bool {
	for _, id := range quotaIDs(p) {
		if strings.Contains(id.Str, "PerDay") {
			return true
		}
	}
	return false
}

func perDay(p *problem) bool {
	return googlePerDay(p) || containsAny(p.message, "tokens per day (tpd)", "requests per day (rpd)", "free-models-per-day")
}

// spent tells whether a 429 without named limits is about money.
func spent(p *problem) bool {
	return len(quotaIDs(p)) == 0 && containsAny(p.message, "billing", "spend limit", "prepay", "credit balance")
}
