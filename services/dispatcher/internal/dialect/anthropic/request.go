package anthropic

import (
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// request is one under translation.
type request struct {
	in    map[string][]byte // members of the client's request
	model traits
	chat  conversation

	tools, choice []byte
	forced        bool // the model has to call a tool

	maxTokens []byte
	thinking  []byte
	effort    string
}

// Request translates a request to Chat Completions. What the Messages API has no counterpart for and an answer does not depend on (seed,
// penalties, logit_bias, verbosity, prediction, service_tier and the like) is left out. So is a response_format of the type
// json_object: OpenAI has it that the messages must ask for JSON, so they do.
func (Translator) Request(body []byte, stream bool) (dialect.Native, error) {
	if !rawjson.Valid(body) {
		return dialect.Native{}, &openai.RequestError{Message: "The request body is not valid JSON.", Code: openai.CodeInvalidJSON}
	}
	r := request{in: rawjson.Given(body), chat: conversation{byID: map[string]*calls{}, sent: map[string]bool{}}}
	if len(inner(r.in["model"])) == 0 {
		return dialect.Native{}, refuse(openai.CodeMissing, "model", "is missing")
	}
	r.model = traitsOf(rawjson.Text(r.in["model"]))
	for _, step := range []func() error{r.readChat, r.readTools, r.readLimit, r.readThinking} {
		if err := step(); err != nil {
			return dialect.Native{}, err
		}
	}
	config := r.outputConfig()
	// A beginning of the answer goes neither with thinking nor with a format.
	r.chat.finish(r.model.prefill && !r.thinks() && rawjson.Get(config, "format") == nil)
	out, err := r.build(stream, config)
	if err != nil {
		return dialect.Native{}, err
	}
	return dialect.Native{Path: path, Header: http.Header{"Anthropic-Version": {version}}, Body: out}, nil
}

func (r *request) readChat() error {
	if n, err := strconv.Atoi(string(r.in["n"])); err == nil && n > 1 {
		return refuse(openai.CodeInvalidValue, "n", "can only be 1 for this provider")
	}
	for _, name := range [...]string{"logprobs", "top_logprobs"} {
		if v := r.in[name]; v != nil && string(v) != "false" && string(v) != "0" {
			return refuse(openai.CodeInvalidValue, name, "can't be sent to this provider, which gives no probabilities of tokens")
		}
	}
	if err := r.chat.native(r.in["system"]); err != nil {
		return err
	}
	return r.chat.read(r.in["messages"])
}

// number gives a member that must be a number, or nil.
func (r *request) number(name string) ([]byte, error) {
	raw := r.in[name]
	if raw == nil || raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9' {
		return raw, nil
	}
	return nil, refuse(openai.CodeInvalidType, name, "must be a number")
}

func (r *request) readLimit() (err error) {
	if r.maxTokens, err = r.number("max_completion_tokens"); err == nil && r.maxTokens == nil {
		r.maxTokens, err = r.number("max_tokens")
	}
	return err
}

// build puts the members together, always in the same order (REQ-04).
func (r *request) build(stream bool, config []byte) ([]byte, error) {
	stop, err := r.stopSequences()
	if err != nil {
		return nil, err
	}
	maxTokens := r.maxTokens
	if maxTokens == nil {
		maxTokens = strconv.AppendInt(nil, DefaultMaxTokens, 10)
	}
	out := fields(nil).set("model", r.in["model"]).set("max_tokens", maxTokens).set("system", r.chat.systemJSON()).set("messages", r.chat.messagesJSON()).
		set("tools", r.tools).set("tool_choice", r.choice).set("stop_sequences", stop)
	if out, err = r.setSampling(out); err != nil {
		return nil, err
	}
	out = out.set("thinking", r.thinking).set("output_config", config).set("metadata", r.metadata())
	if stream {
		out = out.set("stream", []byte("true"))
	}
	return out.end(), nil
}

// stopSequences takes a string or an array of them. The API refuses those that are nothing but white space.
func (r *request) stopSequences() ([]byte, error) {
	raw := r.in["stop"]
	if raw == nil {
		return nil, nil
	}
	if isString(raw) {
		raw = append(append([]byte{'['}, raw...), ']')
	}
	if raw[0] != '[' {
		return nil, refuse(openai.CodeInvalidType, "stop", "must be a string or an array of strings")
	}
	var stops [][]byte
	for s := range rawjson.Elements(raw) {
		stop := s.Of(raw)
		if !isString(stop) {
			return nil, refuse(openai.CodeInvalidType, "stop", "must be a string or an array of strings")
		}
		if !blank(stop) {
			stops = append(stops, stop)
		}
	}
	return array(stops), nil
}

// setSampling sets temperature and top_p, as far as the model takes them. OpenAI's scale of temperatures goes to 2.
func (r *request) setSampling(out fields) (fields, error) {
	temperature, err := r.number("temperature")
	if err != nil {
		return nil, err
	}
	topP, err := r.number("top_p")
	if err != nil || !r.model.sampling {
		return out, err
	}
	topK := r.in["top_k"]
	if r.thinks() { // excludes the first, the last, and a small top_p
		if p, err := strconv.ParseFloat(string(topP), 64); err != nil || p < 0.95 {
			topP = nil
		}
		return out.set("top_p", topP), nil
	}
	if t, err := strconv.ParseFloat(string(temperature), 64); err == nil {
		switch {
		case t > 1:
			temperature = []byte("1")
		case t < 0:
			temperature = []byte("0")
		}
	}
	if temperature != nil && !r.model.both {
		topP = nil
	}
	return out.set("temperature", temperature).set("top_p", topP).set("top_k", topK), nil
}

// maxUserID is the longest user_id that the API takes.
const maxUserID = 256

// metadata names the user. OpenAI's metadata are something else, of which only a user_id fits. Addresses of mail are not wanted there.
func (r *request) metadata() []byte {
	user := rawjson.Given(r.in["metadata"])["user_id"]
	if user == nil {
		user = r.in["user"]
	}
	if id := rawjson.Text(user); id == "" || utf8.RuneCountInString(id) > maxUserID || strings.Contains(id, "@") {
		return nil
	}
	return fields(nil).set("user_id", user).end()
}
