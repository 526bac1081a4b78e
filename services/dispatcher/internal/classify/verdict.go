package classify

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

const maxMessage = 8 << 10 // bytes of a message that a client may see

// verdict adds what follows from a class: effects, scope, wait, and what the client would see.
func (a Answer) verdict(c Class, p *problem, reason string) Verdict {
	if reason == "" {
		reason = a.reason(p)
	}
	v := of(c, reason)
	if c == Upstream && a.stated(p) == http.StatusTooManyRequests {
		v.Cooldown = NoCooldown // the provider is out of breath, the key is innocent
	}
	v.PerModel = a.perModel(c, p)
	if v.Breaker || v.Cooldown != NoCooldown {
		v.Wait, v.Stated = a.wait(c, p)
	}
	v.Status = a.publicStatus(c, p)
	v.Message = a.publicMessage(p, v.Status)
	v.Type, v.Code, v.Param = p.typ, p.code, p.param
	if v.Type == "" || v.Type == "error" {
		v.Type = "invalid_request_error"
	}
	if v.Code == "" {
		v.Code = p.gstatus
	}
	return v
}

// perModel tells whether only this model is concerned. An answer that came, but was no good, says nothing about other models; a
// refusal of a valid key is mostly about the model; limits are per model where the provider counts so.
func (a Answer) perModel(c Class, p *problem) bool {
	switch c {
	case Upstream, Model:
		return true
	case Forbidden:
		class, _ := byCode(specific, p)
		region := class == Forbidden && p.gstatus == "FAILED_PRECONDITION" || strings.HasPrefix(p.code, "unsupported_country")
		return !region && !strings.HasPrefix(p.message, "User location") && !ofAccount(p)
	case Rate:
		return a.limitsPerModel(p)
	case Quota:
		return perDay(p) && a.limitsPerModel(p) // money is the account's
	case Success, Payment, Auth, Client, Size, Untranslatable, Incapable, BadOutput, Cancelled:
	}
	return false
}

func (a Answer) limitsPerModel(p *problem) bool {
	if strings.Contains(p.message, "free-models-per-") {
		return false // OpenRouter counts all free models of the account together
	}
	switch a.Provider {
	case "gemini", "groq", "cerebras", "anthropic":
		return true
	}
	return p.gstatus == "RESOURCE_EXHAUSTED" || strings.HasPrefix(p.message, "Rate limit reached for ")
}

// reason names the result for logs: statuses, and a code when it looks like one.
func (a Answer) reason(p *problem) string {
	r := "http " + strconv.Itoa(a.Status)
	if p.status != 0 && p.status != a.Status {
		r += " body " + strconv.Itoa(p.status)
	}
	if p.base != 0 {
		return r + " code " + strconv.Itoa(p.base)
	}
	for _, code := range p.codes() {
		if isToken(code) {
			return r + " " + code
		}
	}
	return r
}

const maxToken = 48

func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= maxToken
}

// publicStatus is the status for the client when the verdict is final: the upstream's own where it is the client's affair. A status about
// the gateway's key or about load never is.
func (a Answer) publicStatus(c Class, p *problem) int {
	switch status := a.stated(p); status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusConflict,
		http.StatusFailedDependency, http.StatusTooEarly, http.StatusTooManyRequests, 498, statusClientClosed:
	default:
		if status/100 == 4 {
			return status
		}
	}
	switch c {
	case Payment:
		return http.StatusPaymentRequired
	case Model:
		return http.StatusNotFound
	case Size:
		return http.StatusRequestEntityTooLarge
	case Success, Upstream, Rate, Quota, Auth, Forbidden, Client, Untranslatable, Incapable, BadOutput, Cancelled:
	}
	return http.StatusBadRequest
}

// publicMessage is the text of the error without markup: the upstream's words, or those of the status.
func (a Answer) publicMessage(p *problem, status int) string {
	message := strings.TrimSpace(p.message)
	if message == "" && !p.found && !a.html() && jsonPart(a.Body) == nil {
		message, _, _ = strings.Cut(strings.TrimSpace(string(a.Body[:min(len(a.Body), maxMessage)])), "\n")
	}
	if message = strings.ToValidUTF8(message, "\uFFFD"); len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	if message == "" || strings.HasPrefix(message, "<") {
		message = http.StatusText(status)
	}
	if message == "" {
		message = "The upstream refused the request"
	}
	return message
}

// clock gives the time from which dates in hints count.
func (a Answer) clock() time.Time {
	if a.At.IsZero() {
		return time.Now()
	}
	return a.At
}
