package classify

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	named = true
	auto  = false
)

// the table, one case per result.
func TestTable(t *testing.T) {
	t.Parallel()
	const (
		counts  = true
		neutral = false
	)
	cases := map[string]struct {
		statuses []int
		class    Class
		breaker  bool
		cooldown Cooldown
		named    Step
		auto     Step
		category string
	}{
		"timeout, overload, crash": {
			[]int{407, 408, 421, 500, 501, 502, 503, 504, 507, 520, 521, 522, 523, 524, 525, 526, 527, 529, 598},
			Upstream, counts, OtherCooldown, Retry, Retry, "SERVICE_UNAVAILABLE",
		},
		"conflict, too early, Groq's own": {[]int{409, 425, 498, 499}, Upstream, counts, OtherCooldown, Retry, Retry, "SERVICE_UNAVAILABLE"},
		"not an answer at all":            {[]int{0, 100, 302, 307, 600, 999}, Upstream, counts, OtherCooldown, Retry, Retry, "SERVICE_UNAVAILABLE"},
		"too many requests":               {[]int{429}, Rate, counts, QuotaCooldown, Retry, Retry, "RESOURCE_EXHAUSTED"},
		"bad key":                         {[]int{401}, Auth, neutral, ForbiddenCooldown, Retry, Retry, "AUTH_FAILURE"},
		"forbidden":                       {[]int{403}, Forbidden, neutral, ForbiddenCooldown, Retry, Retry, "AUTH_FAILURE"},
		"no balance":                      {[]int{402}, Payment, neutral, QuotaCooldown, Final, NextChannel, "RESOURCE_EXHAUSTED"}, // R-118, C-09
		"client's fault":                  {[]int{400, 405, 406, 411, 414, 415, 422, 451}, Client, neutral, NoCooldown, Final, Final, "VALIDATION_ERROR"},
		"too large":                       {[]int{413}, Size, neutral, NoCooldown, Final, NextChannel, "VALIDATION_ERROR"},       // C-26
		"a model that is no more":         {[]int{410}, Model, neutral, NoCooldown, NextChannel, NextChannel, "MODEL_NOT_FOUND"},
		"no such model":                   {[]int{404}, Model, neutral, NoCooldown, Final, NextChannel, "MODEL_NOT_FOUND"},       // R-101, C-43
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, status := range c.statuses {
				v := Of(Answer{Status: status, Body: []byte(`{"error":{"message":"m"}}`)})
				require.Equal(t, c.class, v.Class, status)
				require.Equal(t, c.breaker, v.Breaker, status)
				require.Equal(t, c.cooldown, v.Cooldown, status)
				require.Equal(t, c.named, v.Next(named), status)
				require.Equal(t, c.auto, v.Next(auto), status)
				require.Equal(t, c.category, v.Class.Category(), status)
				require.True(t, v.Failed(), status)
				if v.Next(named) == Final {
					require.Equal(t, status, v.Status)
					require.Equal(t, "m", v.Message)
				}
			}
		})
	}
}

// Whoever goes through all classes, as metrics do that are there from the start, meets each one that this package gives.
func TestClassesAreAll(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "class.go", nil, 0)
	require.NoError(t, err)
	var declared []Class
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(spec.Type) == "Class" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value) //nolint:forcetypeassert // anything else fails the test
			require.NoError(t, err)
			declared = append(declared, Class(text))
		}
		return true
	})
	require.Greater(t, len(declared), 10)
	require.ElementsMatch(t, declared, Classes)
}

func TestSuccess(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]Answer{
		"answer":              {Status: 200, Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)},
		"created":             {Status: 201, Body: []byte(`{"choices":[{}]}`)},
		"error is null":       {Status: 200, Body: []byte(`{"error":null,"choices":[{"message":{"role":"assistant","content":"Hi"}}]}`)},
		"error is empty":      {Status: 200, Body: []byte(`{"error":"","choices":[{}]}`)},
		"error is {}":         {Status: 200, Body: []byte(`{"error":{},"choices":[{}]}`)},
		"error is false":      {Status: 200, Body: []byte(`{"error":false,"choices":[{}]}`)},
		"MiniMax all right":   {Status: 200, Body: []byte(`{"choices":[{}],"base_resp":{"status_code":0,"status_msg":""}}`)},
		"says the word error": {Status: 200, Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"error"}}]}`)},
		"quotes an error":     {Status: 200, Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"{\"error\":{\"message\":\"m\"}}"}}]}`)},
		"embeddings":          {Status: 200, Body: []byte(`{"object":"list","data":[{"embedding":[0.5]}]}`)},
		"native answer":       {Status: 200, Body: []byte(`{"message":{"role":"assistant","content":"Hi"},"done":true}`)},
		"event":               {Status: 200, Event: true, Body: []byte(`{"choices":[{"delta":{"content":"error"}}]}`)},
		"usage event":         {Status: 200, Event: true, Body: []byte(`{"choices":[],"usage":{"total_tokens":1}}`)},
		"end of the stream":   {Status: 200, Event: true, Body: []byte(`[DONE]`)},
		"empty event":         {Status: 200, Event: true},
		"labelled as a page":  {Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: []byte(`{"choices":[{}]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Of(a)
			require.Equal(t, Success, v.Class, "%+v", v)
			require.Equal(t, Done, v.Next(named))
			require.False(t, v.Failed())
			require.False(t, v.Breaker)
			require.Equal(t, NoCooldown, v.Cooldown)
		})
	}
}

// R-100, C-42: 2xx with an error body, empty choices, or nothing.
func TestSuccessThatIsNone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		event bool
		body  string
		class Class
	}{
		"nothing":                         {body: "", class: Upstream},
		"blank lines":                     {body: "\n\n \n", class: Upstream},
		"page":                            {body: "<html><body>Welcome</body></html>", class: Upstream},
		"no choices":                      {body: `{"id":"c1","choices":[]}`, class: Upstream},
		"null choices":                    {body: `{"choices":null,"message":{"role":"assistant"}}`, class: Upstream},
		"error object":                    {body: `{"error":{"message":"busy"}}`, class: Upstream},
		"error text":                      {body: `{"error":"out of memory"}`, class: Upstream},
		"error list":                      {body: `[{"error":{"message":"busy","code":503}}]`, class: Upstream},
		"error in a choice":               {body: `{"choices":[{"error":{"code":502,"message":"gone"}}]}`, class: Upstream},
		"choices and error":               {body: `{"choices":[{"delta":{"content":""}}],"error":{"code":429,"message":"slow"}}`, event: true, class: Rate},
		"error event":                     {body: `{"error":{"type":"overloaded_error","message":"busy","code":529}}`, event: true, class: Upstream},
		"Groq's error":                    {body: `{"choices":[{"delta":{}}],"x_groq":{"error":"over capacity"}}`, event: true, class: Upstream},
		"status beside the error":         {body: `{"error":{"message":"no"},"status_code":401}`, event: true, class: Auth},
		"finish reason error":             {body: `{"choices":[{"delta":{},"finish_reason":"error"}]}`, event: true, class: Upstream},
		"finish reason without resources": {body: `{"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}`, event: true, class: Upstream},
		"malformed call":                  {body: `{"candidates":[{"finishReason":"UNEXPECTED_TOOL_CALL"}]}`, event: true, class: BadOutput},
		"flat error event":                {body: `{"type":"error","code":"insufficient_quota","message":"m"}`, event: true, class: Quota},
		"flat error object":               {body: `{"object":"error","message":"m","type":"server_error","code":500}`, class: Upstream},
		"detail":                          {body: `{"detail":"Unauthorized"}`, class: Upstream},
		"errors":                          {body: `{"errors":[{"message":"m","code":401}]}`, class: Auth},
		"inner 400":                       {body: `{"error":{"message":"bad","code":400}}`, class: Client},
		"inner 404":                       {body: `{"error":{"message":"no endpoints","code":404}}`, class: Model},
		"inner 402":                       {body: `{"error":{"message":"no money","code":"402"}}`, class: Payment},
		"inner client type":               {body: `{"error":{"message":"bad","type":"invalid_request_error"}}`, event: true, class: Client},
		"inner context":                   {body: `{"error":{"message":"too long","code":"context_length_exceeded"}}`, event: true, class: Size},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Of(Answer{Status: http.StatusOK, Event: c.event, Body: []byte(c.body)})
			require.Equal(t, c.class, v.Class, "%+v", v)
			require.True(t, v.Failed())
			if v.Next(named) == Final {
				require.Equal(t, 4, v.Status/100)
			}
		})
	}
}

// where the status lies, the code tells; and a text only where no code does.
func TestLies(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		provider string
		status   int
		header   string
		body     string
		class    Class
	}{
		"Gemini: key expired, only in words": {"gemini", 400, "", `[{"error":{"code":400,"message":"API key expired. Please renew the API key.","status":"INVALID_ARGUMENT"}}]`, Auth},
		"Gemini: billing needed there":       {"gemini", 400, "", `{"error":{"code":400,"message":"Free tier is not available in your country.","status":"FAILED_PRECONDITION"}}`, Forbidden},
		"Gemini: billing 429":                {"gemini", 429, "", `{"error":{"code":429,"message":"Billing account is closed: prepay credits are used up","status":"RESOURCE_EXHAUSTED"}}`, Quota},
		"Gemini: minute limit mentions billing": {
			"gemini", 429, "", `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED",` +
				`"details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]}]}}`, Rate,
		},
		"Gemini: suspended":           {"gemini", 403, "", `{"error":{"code":403,"message":"Permission denied: Consumer has been suspended.","status":"PERMISSION_DENIED","details":[{"reason":"CONSUMER_SUSPENDED"}]}}`, Auth},
		"OpenAI: credit":              {"", 429, "", `{"error":{"message":"m","type":"x","code":"credit_balance_exhausted"}}`, Quota},
		"OpenAI: spend":               {"", 429, "", `{"error":{"message":"m","code":"organization_spend_limit_exceeded"}}`, Quota},
		"OpenAI: usage":               {"", 429, "", `{"error":{"message":"m","code":"organization_usage_limit_exceeded"}}`, Quota},
		"OpenAI: old slow_down":       {"", 503, "", `{"error":{"message":"m","code":"slow_down"}}`, Upstream},
		"request above a whole limit": {"", 429, "", `{"error":{"message":"Request too large for alpha-1 in organization org-x on tokens per min (TPM): Limit 30000, Requested 60000.","type":"tokens","code":"rate_limit_exceeded"}}`, Size},
		"Anthropic: usage limit":      {"anthropic", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2027-01-01."}}`, Quota},
		"Anthropic: billing":          {"anthropic", 402, "", `{"type":"error","error":{"type":"billing_error","message":"m"}}`, Payment},
		"Anthropic: conflict":         {"anthropic", 409, "", `{"type":"error","error":{"type":"conflict_error","message":"m"}}`, Upstream},
		"Groq: bad JSON by the model": {"groq", 400, "", `{"error":{"message":"m","type":"invalid_request_error","code":"json_validate_failed"}}`, BadOutput},
		"Groq: day of requests":       {"groq", 429, "", `{"error":{"message":"Rate limit reached for model x on requests per day (RPD): Limit 1000","type":"requests","code":"rate_limit_exceeded"}}`, Quota},
		"OpenRouter: in flight without wait": {
			"openrouter", 402, "", `{"error":{"message":"m","code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, Payment,
		},
		// models that are missing, said with a 400.
		"DeepSeek: no such model":  {"deepseek", 400, "", `{"error":{"message":"Model Not Exist","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, Model},
		"Mistral: invalid model":   {"mistral", 400, "", `{"object":"error","message":"Invalid model: x","type":"invalid_model","param":null,"code":"1500"}`, Model},
		"Mistral: 1500 alone":      {"mistral", 400, "", `{"object":"error","message":"m","type":"y","param":null,"code":"1500"}`, Model},
		"OpenRouter: no valid id":  {"openrouter", 400, "", `{"error":{"message":"vendor/x is not a valid model ID","code":400}}`, Model},
		"Groq: terms of the model": {"groq", 400, "", `{"error":{"message":"The model x requires terms acceptance.","type":"invalid_request_error","code":"model_terms_required"}}`, Model},
		"GitHub: unknown model":    {"", 400, "", `{"error":{"code":"unknown_model","message":"Unknown model: x","details":"Unknown model: x"}}`, Model},
		"retired, in words":        {"", 400, "", `{"error":{"message":"The model 'x' has been deprecated, learn more.","type":"invalid_request_error","param":"model"}}`, Model},
		"no model for chat":        {"", 400, "", `{"error":{"message":"The model does not support chat completions","type":"invalid_request_error"}}`, Model},
		"OpenAI: no chat model":    {"", 404, "", `{"error":{"message":"This is not a chat model and thus not supported in the v1/chat/completions endpoint.","param":"model","code":null}}`, Model},
		"a model in passing":       {"", 400, "", `{"error":{"message":"messages[0].content must not mention a model that does not exist","param":null}}`, Client},
		"a parameter of the model": {"", 400, "", `{"error":{"message":"The model 'x' was not found in tools","param":"tools"}}`, Client},
		"a limit of the model":     {"", 400, "", `{"error":{"message":"The model 'x' takes at most 4 stop sequences","param":null}}`, Client},

		// keys and accounts that are no good, said with another 4xx.
		"xAI: wrong key":              {"", 400, "", `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: po***75."}`, Auth},
		"Groq: restricted":            {"groq", 400, "", `{"error":{"message":"Organization has been restricted.","type":"invalid_request_error","code":"organization_restricted"}}`, Auth},
		"restricted, only in words":   {"", 400, "", `{"error":{"message":"Organization has been restricted. Please reach out to support.","type":"invalid_request_error"}}`, Auth},
		"Anthropic: disabled":         {"anthropic", 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}`, Auth},
		"account suspended":           {"", 400, "", `{"error":{"message":"Your account has been suspended."}}`, Auth},
		"key revoked, 422":            {"", 422, "", `{"detail":"This API key was revoked"}`, Auth},
		"no balance, 400":             {"", 400, "", `{"error":{"message":"Insufficient balance to run this request"}}`, Quota},
		"Fireworks: spending limit":   {"", 412, "", `{"error":{"message":"Account x is suspended, possibly due to reaching the monthly spending limit."}}`, Quota},
		"suspended, 412":              {"", 412, "", `{"error":"account suspended"}`, Auth},
		"412 for whatever":            {"", 412, "", ``, Upstream},
		"Amazon: throttled":           {"", 400, "", `{"__type":"com.amazon.coral.availability#ThrottlingException","message":"Too many requests"}`, Rate},
		"Amazon: no access":           {"", 400, "", `{"__type":"AccessDeniedException","Message":"no"}`, Forbidden},
		"Amazon: bad token":           {"", 400, "", `{"__type":"UnrecognizedClientException","message":"The security token is invalid."}`, Auth},
		"Amazon: the client's fault":  {"", 400, "", `{"__type":"ValidationException","message":"bad"}`, Client},
		"a key that the client wrote": {"", 400, "", `{"error":{"message":"Invalid value for messages[0].content: 'Incorrect API key provided: abc' is too long","param":"messages[0].content","code":"invalid_value"}}`, Client},
		"a key as a parameter":        {"", 400, "", `{"error":{"message":"API key of the tool is not valid","param":"tools[0]"}}`, Client},
		"OpenRouter: limit of a key":  {"openrouter", 403, "", `{"error":{"message":"Key limit exceeded (total limit). Manage it at h","code":403}}`, Quota},

		// what the model can't do.
		"OpenRouter: no tools":    {"openrouter", 404, "", `{"error":{"message":"No endpoints found that support tool use.","code":404}}`, Incapable},
		"OpenRouter: data policy": {"openrouter", 404, "", `{"error":{"message":"No endpoints found matching your data policy.","code":404}}`, Model},
		"Ollama: no tools":        {"ollama", 400, "", `{"error":{"message":"registry.ollama.ai/library/x:3b does not support tools","type":"api_error"}}`, Incapable},
		"Ollama: no thinking":     {"ollama", 400, "", `{"error":"\"x:3b\" does not support thinking"}`, Incapable},
		"Groq: no such parts":     {"groq", 400, "", `{"error":{"message":"'messages.0' : for 'role:user' the following must be satisfied: content part type is not supported","type":"invalid_request_error"}}`, Incapable},
		"vLLM: no images":         {"", 400, "", `{"error":{"message":"x is not a multimodal model None","type":"BadRequestError","code":400}}`, Incapable},
		"Gemma: no functions":     {"gemini", 400, "", `{"error":{"code":400,"message":"Function calling is not enabled for models/gemma-3-27b-it","status":"INVALID_ARGUMENT"}}`, Incapable},
		"an image that is broken": {"", 400, "", `{"error":{"message":"Invalid image input: could not decode"}}`, Client},

		// models that crashed.
		"LM Studio: crashed":        {"lmstudio", 400, "", `{"error":"The model has crashed without additional information. (Exit code: 18446744072635812000)"}`, Upstream},
		"LM Studio: not loaded":     {"lmstudio", 400, "", `{"error":{"message":"Failed to load model \"x\". Error: Operation canceled.","type":"invalid_request_error","param":"model","code":"model_load_failed"}}`, Upstream},
		"LM Studio: in words alone": {"lmstudio", 400, "", `{"error":"Failed to load model \"x\"."}`, Upstream},
		"LM Studio: nothing loaded": {"lmstudio", 400, "", `{"error":{"message":"No models loaded. Please load a model.","type":"invalid_request_error"}}`, Upstream},

		"OpenRouter: own limit":     {"openrouter", 429, "", `{"error":{"message":"Rate limit exceeded: free-models-per-min.","code":429}}`, Rate},
		"OpenRouter: guardrail":     {"openrouter", 403, "", `{"error":{"message":"blocked by guardrail","code":403}}`, Forbidden},
		"MiniMax: parameters":       {"", 200, "", `{"base_resp":{"status_code":2013,"status_msg":"invalid params"}}`, Client},
		"MiniMax: internal":         {"", 200, "", `{"base_resp":{"status_code":1000,"status_msg":"unknown error"}}`, Upstream},
		"MiniMax: sensitive":        {"", 200, "", `{"base_resp":{"status_code":1026,"status_msg":"input sensitive"}}`, Client},
		"MiniMax: key":              {"", 200, "", `{"base_resp":{"status_code":1004,"status_msg":"login fail"}}`, Auth},
		"vLLM: tools not enabled":   {"", 400, "", `{"error":{"message":"\"auto\" tool choice requires --enable-auto-tool-choice","type":"BadRequestError","param":null,"code":400}}`, Incapable},
		"Ollama cloud: rate":        {"ollama", 429, "", `{"error":"too many requests"}`, Rate},
		"Ollama cloud: bad gateway": {"ollama", 502, "", `{"error":"upstream"}`, Upstream},
		"challenge page":            {"", 403, "text/html", `<!DOCTYPE html><title>Just a moment</title>`, Upstream},
		"page with 413":             {"", 413, "text/html", `<html><h1>413</h1></html>`, Size},
		"page with 429":             {"", 429, "text/html", `<html>slow down</html>`, Rate},
		"path unknown":              {"", 404, "text/plain", `404 page not found`, Model},
		"context: Gemini":           {"gemini", 400, "", `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}`, Size},
		"context: code on 422":      {"", 422, "", `{"error":{"message":"m","code":"context_length_exceeded"}}`, Size},
		"overload with 400":         {"", 400, "", `{"error":{"message":"m","type":"overloaded_error"}}`, Upstream},
		"rate limit with 400":       {"", 400, "", `{"error":{"message":"m","code":"rate_limit_exceeded"}}`, Rate},
		"model gone with 400":       {"", 400, "", `{"error":{"message":"m","code":"model_not_found"}}`, Model},
		"Anthropic: 413":            {"anthropic", 413, "", `{"type":"error","error":{"type":"request_too_large","message":"m"}}`, Size},
		"OpenCode: context":         {"opencode", 200, "", `{"info":{"error":{"name":"ContextOverflowError","data":{"message":"m"}}},"parts":[]}`, Size},
		"OpenCode: not retryable":   {"opencode", 200, "", `{"info":{"error":{"name":"APIError","data":{"message":"m","statusCode":400}}},"parts":[]}`, Client},
		"quota and forbidden":       {"", 403, "", `{"error":{"message":"billing quota","code":"insufficient_quota"}}`, Forbidden},
		"5xx with a client's code":  {"", 500, "", `{"error":{"message":"m","type":"invalid_request_error","code":400}}`, Upstream},
		"5xx with a model's code":   {"", 503, "", `{"error":{"message":"m","code":"model_not_found"}}`, Upstream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := Answer{Provider: c.provider, Status: c.status, Header: http.Header{}, Body: []byte(c.body), At: at}
			if c.header != "" {
				a.Header.Set("Content-Type", c.header)
			}
			v := Of(a)
			require.Equal(t, c.class, v.Class, "%+v", v)
			require.NotContains(t, v.Message, "<")
		})
	}
}

// what a client writes into its request and the upstream quotes must not cost a key or a breaker anything.
func TestQuotedWordsCostNothing(t *testing.T) {
	t.Parallel()
	for _, words := range []string{
		"API key not valid", "your credit balance is too low", "User location is not supported", "You have reached your specified API usage limits",
		"billing", "reported as leaked", "failed authentication attempts", "try again in 24h",
	} {
		for _, body := range []string{
			`{"error":{"message":"messages.0.content: unexpected value '` + words + `'","type":"invalid_request_error","param":null,"code":null}}`,
			`{"error":{"message":"` + words + `","type":"invalid_request_error","param":"messages.0.content","code":null}}`,
			`{"error":{"code":400,"message":"Invalid value: ` + words + `","status":"INVALID_ARGUMENT"}}`,
		} {
			v := Of(Answer{Status: 400, Body: []byte(body)})
			require.Equal(t, Client, v.Class, body)
			require.False(t, v.Breaker, body)
			require.Equal(t, NoCooldown, v.Cooldown, body)
			require.Zero(t, v.Wait, body)
		}
	}
}

// The message and the fields reach the client in one shape, whatever the upstream's was (FO-09, FO-10, R-101).
func TestPublicFace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status                    int
		body                      string
		message, typ, code, param string
	}{
		"all fields":        {400, `{"error":{"message":"bad param","type":"invalid_request_error","param":"temperature","code":"unsupported_value"}}`, "bad param", "invalid_request_error", "unsupported_value", "temperature"},
		"list":              {400, `[{"error":{"code":400,"message":"msg-one","status":"INVALID_ARGUMENT"}}]`, "msg-one", "invalid_request_error", "INVALID_ARGUMENT", ""},
		"numeric code":      {400, `{"error":{"code":400,"message":"msg-two"}}`, "msg-two", "invalid_request_error", "", ""},
		"text":              {400, `{"error":"msg-three"}`, "msg-three", "invalid_request_error", "", ""},
		"detail list":       {422, `{"detail":[{"type":"missing","loc":["body"],"msg":"msg-four"}]}`, "msg-four", "invalid_request_error", "", ""},
		"error in an error": {400, `{"error":{"message":"{\"error\":{\"code\":400,\"message\":\"msg-five\"}}","code":400}}`, "msg-five", "invalid_request_error", "", ""},
		"empty":             {400, ``, "Bad Request", "invalid_request_error", "", ""},
		"page":              {413, `<html><h1>413</h1></html>`, "Request Entity Too Large", "invalid_request_error", "", ""},
		"plain text":        {404, "404 page not found\n", "404 page not found", "invalid_request_error", "", ""},
		"flat":              {400, `{"message":"no","type":"invalid_request_error","param":"x","code":"wrong_api_format"}`, "no", "invalid_request_error", "wrong_api_format", "x"},
		"detail text":       {400, `{"detail":"msg"}`, "msg", "invalid_request_error", "", ""},
		"event stream":      {400, "event: error\ndata: {\"error\":{\"message\":\"msg\"}}\n\n", "msg", "invalid_request_error", "", ""},
		"other code":        {400, `{"error":{"message":"m","code":"3280"}}`, "m", "invalid_request_error", "3280", ""},
		"JSON without text": {400, `{"ok":false}`, "Bad Request", "invalid_request_error", "", ""},
		"bad UTF-8":         {400, "{\"error\":{\"message\":\"a\xffb\"}}", "a\uFFFDb", "invalid_request_error", "", ""},
		"byte order mark":   {400, "\xef\xbb\xbf{\"error\":{\"message\":\"m\"}}", "m", "invalid_request_error", "", ""},
		"unknown status":    {444, ``, "The upstream refused the request", "invalid_request_error", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := Of(Answer{Status: c.status, Body: []byte(c.body)})
			require.Equal(t, Final, v.Next(named), "%+v", v)
			require.Equal(t, c.status, v.Status)
			require.Equal(t, c.message, v.Message)
			require.Equal(t, c.typ, v.Type)
			require.Equal(t, c.code, v.Code)
			require.Equal(t, c.param, v.Param)
		})
	}
}

// Bodies are given as a prefix: what is cut off must not change what is there.
func TestTruncatedBodies(t *testing.T) {
	t.Parallel()
	long := `{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"` + strings.Repeat("x", 20<<10)
	v := Of(Answer{Status: 429, Body: []byte(long)})
	require.Equal(t, Quota, v.Class)
	require.LessOrEqual(t, len(v.Message), maxMessage)

	v = Of(Answer{Status: 200, Body: []byte(`{"choices":[{"message":{"role":"assistant","content":"` + strings.Repeat("x", 20<<10))})
	require.Equal(t, Success, v.Class)
}

// Reasons go to logs and facts: they hold statuses and code words, never text that an upstream or a client wrote.
func TestReasonIsSafe(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"error":{"message":"sk-secret","code":"slow_down"}}`:                        "http 429 slow_down",
		`{"error":{"message":"sk-secret","code":"key sk-secret"}}`:                    "http 429",
		`{"error":{"message":"m","code":"` + strings.Repeat("a", maxToken+1) + `"}}`:  "http 429",
		`{"error":{"message":"m","type":"error","http_code":"429"},"type":"(2056) "}`: "http 429 error",
	} {
		require.Equal(t, want, Of(Answer{Status: 429, Body: []byte(body)}).Reason)
	}
}
