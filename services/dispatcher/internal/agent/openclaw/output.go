package openclaw

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/reply"
	"hydrallm/shared/openai/rawjson"
)

// failure is why there is no answer.
type failure struct {
	status  int
	message string
}

func failed(status int, message string) *failure { return &failure{status, message} }

// body is the failure in OpenAI's words.
func (f failure) body() []byte {
	b := rawjson.AppendString([]byte(`{"error":{"message":`), f.message)
	return append(b, `,"type":"api_error","param":null,"code":null}}`...)
}

// readOutput reads what the program printed: the result of a turn, by itself or as a gateway wraps it, or an error.
func readOutput(output []byte) (reply.Answer, *failure) {
	if !gjson.ValidBytes(output) {
		return reply.Answer{}, failed(http.StatusBadGateway, "The program printed no result")
	}
	root := gjson.ParseBytes(output)
	result := root
	if r := root.Get("result"); r.IsObject() {
		result = r
	}
	for _, e := range [...]gjson.Result{root.Get("error"), result.Get("meta.error")} {
		if e.IsObject() {
			message := e.Get("message").String()
			return reply.Answer{}, failed(statusIn(message), message)
		}
	}
	if status := root.Get("status").Str; status != "" && status != "ok" || result.Get("meta.aborted").Bool() {
		return reply.Answer{}, failed(http.StatusBadGateway, "The turn ended without an answer")
	}
	var texts []string
	for _, p := range result.Get("payloads").Array() {
		text := p.Get("text").Str
		if p.Get("isError").Bool() {
			return reply.Answer{}, failed(statusIn(text), text)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return reply.Answer{}, failed(http.StatusBadGateway, "The turn brought no text")
	}
	meta := result.Get("meta.agentMeta")
	usage := meta.Get("usage")
	cached := count(usage.Get("cacheRead"))
	return reply.Answer{
		Head: reply.Head{
			ID: "chatcmpl-" + meta.Get("sessionId").Str, Created: time.Now().Unix(),
			Model: strings.Trim(meta.Get("provider").Str+"/"+meta.Get("model").Str, "/"),
		},
		Text: strings.Join(texts, "\n\n"), Finish: finish(result.Get("meta.stopReason").Str),
		Usage: reply.Usage{
			Prompt: count(usage.Get("input")) + cached + count(usage.Get("cacheWrite")), Completion: count(usage.Get("output")), Cached: cached,
		},
	}, nil
}

func finish(reason string) string {
	if reason == "length" || reason == "max_tokens" {
		return "length"
	}
	return "stop"
}

// maxCount is more tokens than any turn costs.
const maxCount = 1 << 40

func count(v gjson.Result) int64 { return min(max(v.Int(), 0), maxCount) }

var httpStatus = regexp.MustCompile(`\bHTTP ([45]\d\d)\b`)

// statusIn finds the status of the provider, which only the words of an error have: "request failed (authentication failed, HTTP 401)".
func statusIn(message string) int {
	if m := httpStatus.FindStringSubmatch(message); m != nil {
		status, _ := strconv.Atoi(m[1]) // three digits
		return status
	}
	return http.StatusBadGateway
}
