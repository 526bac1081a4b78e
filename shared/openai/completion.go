package openai

import (
	"fmt"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// CompletionRequest is a request to Completions, OpenAI's older protocol, read but not decoded. It aliases the body, which must not change while the
// request is in use. It is safe for concurrent use.
type CompletionRequest struct {
	*Request

	Prompts []rawjson.Span // the texts to be continued, with quotes; nil when they are token numbers
	History rawjson.Span   // messages that stand for the prompt: no client sends them; zero = none
	// Demand says why only a provider that has the protocol itself can serve the request; nil when a chat model can.
	Demand *RequestError

	logprobs int // how many alternatives of each token; -1 = no probabilities
}

// ScanCompletion reads a client's body in one pass. The body must be one JSON object in UTF-8 in which the members that the gateway reads have
// the right type and occur once (REQ-07), and it must have a prompt. The error is a *RequestError.
func ScanCompletion(body []byte) (*CompletionRequest, error) {
	r := &completionScan{
		requestScan: requestScan{Request: Request{Choices: 1, body: body, members: make([]member, 0, 8)}, s: rawjson.Scan(body)},
		logprobs:    -1, bestOf: 1,
	}
	if err := r.object(r.member); err != nil {
		return nil, err
	}
	if !r.given && r.history.IsZero() {
		return nil, &RequestError{Message: "'prompt' is missing.", Param: paramPrompt, Code: CodeMissing}
	}
	r.weigh(r.MaxTokens)
	for i := range r.prompts {
		r.weighText(r.prompts[i].Of(body))
	}
	r.UserText = len(r.prompts) > 0
	return &CompletionRequest{Request: &r.Request, Prompts: r.prompts, History: r.history, Demand: r.demand(), logprobs: r.logprobs}, nil
}

// completionScan is a CompletionRequest while it is being read.
type completionScan struct {
	requestScan
	given    bool
	prompts  []rawjson.Span
	tokens   bool // the prompts are token numbers
	history  rawjson.Span
	suffix   bool
	echo     bool
	bestOf   int64
	logprobs int
}

const (
	paramPrompt = "prompt"
	maxPrompts  = 2048
)

// completionNames are the names that only this protocol has.
var completionNames = []string{"suffix", "echo", "best_of"}

// member reads one top-level member.
func (r *completionScan) member() {
	switch string(r.s.Key()) {
	case paramPrompt:
		r.own(r.readPrompt)
	case "messages":
		r.own(func() {
			if r.s.Kind() == '[' {
				r.history = r.s.Skip()
				return
			}
			r.s.Skip()
			r.wrongType("messages", "an array")
		})
	case "suffix":
		r.own(func() { r.suffix = r.text("suffix") != "" })
	case "echo":
		r.own(func() { r.echo, _ = r.boolean("echo") })
	case "best_of":
		r.own(func() { r.bestOf = r.number() })
	case "logprobs":
		r.own(r.readLogprobs)
	default:
		r.otherSpelling(completionNames, "", 0)
		r.requestScan.member()
	}
}

// own reads a member that the gateway acts on.
func (r *completionScan) own(read func()) {
	m := member{name: r.s.Key(), key: r.s.KeySpan()}
	start := r.s.Pos()
	read()
	if r.s.Failed() {
		return
	}
	m.value = rawjson.Span{Start: start, End: r.s.Pos()}
	r.checkOnce(m.name)
	r.members = append(r.members, m)
}

// readLogprobs reads a number, or what some clients send for none.
func (r *completionScan) readLogprobs() {
	kind, value := r.s.Kind(), r.s.Skip().Of(r.body)
	n, err := strconv.Atoi(string(value))
	switch {
	case kind == 'n', kind == 'f':
	case err != nil || n < 0:
		r.wrongType("logprobs", "a whole number")
	default:
		r.logprobs = n
	}
}

// readPrompt reads a text, a list of texts, token numbers, or a list of lists of them.
func (r *completionScan) readPrompt() {
	switch r.s.Kind() {
	case '"':
		r.given, r.prompts = true, []rawjson.Span{r.s.Skip()}
	case 'n':
		r.s.Skip()
	case '[':
		r.readPrompts()
	default:
		r.s.Skip()
		r.badPrompt()
	}
}

func (r *completionScan) readPrompts() {
	r.s.Enter('[')
	texts, others := 0, 0
	for r.s.Element() {
		kind := r.s.Kind()
		switch value := r.s.Skip(); {
		case kind == '"':
			if texts++; texts <= maxPrompts {
				r.prompts = append(r.prompts, value)
			}
		case kind == '[', '0' <= kind && kind <= '9':
			others++
		default:
			r.badPrompt()
		}
	}
	r.given, r.tokens = true, others > 0
	switch {
	case texts > 0 && others > 0:
		r.badPrompt()
	case texts > maxPrompts:
		r.fail(CodeInvalidValue, paramPrompt, fmt.Sprintf("'prompt' holds more than %d texts.", maxPrompts))
	case texts+others == 0:
		r.fail(CodeInvalidValue, paramPrompt, "'prompt' is an empty array.")
	}
}

func (r *completionScan) badPrompt() {
	r.wrongType(paramPrompt, "a string, an array of strings, an array of token numbers, or an array of such arrays")
}

// demand finds what a chat model can't do. It is refused rather than left out: an editor would put text without a sense for what follows into a file.
func (r *completionScan) demand() *RequestError {
	only := func(param, what string) *RequestError {
		return &RequestError{Param: param, Code: CodeInvalidValue, Message: what + " That takes an upstream with 'completions: native' in the configuration."}
	}
	switch {
	case !r.history.IsZero() && !r.suffix:
		return nil
	case r.tokens:
		return only(paramPrompt, "'prompt' holds token numbers, which mean nothing to this model.")
	case len(r.prompts) > 1:
		return only(paramPrompt, "'prompt' holds several texts, but this model answers one at a time.")
	case r.suffix:
		return only("suffix", "'suffix' is given, but this model can't fill in the middle.")
	case len(r.prompts) == 1 && blank(r.prompts[0].Of(r.body)):
		return only(paramPrompt, "'prompt' is empty.")
	case r.echo:
		return only("echo", "'echo' is given, but this model can't repeat the prompt.")
	case r.bestOf > max(int64(r.Choices), 1):
		return only("best_of", "'best_of' is larger than 'n', but this model can't choose the best of several answers.")
	}
	return nil
}

// Chat gives the request to Chat Completions that says the same: the prompt is what the user says. All other members keep their bytes and order. A request
// with a Demand has none.
func (r *CompletionRequest) Chat() []byte {
	c := rawjson.Copy(make([]byte, 0, len(r.body)+64), r.body)
	for i := range r.members {
		m := &r.members[i]
		switch name := string(m.name); name {
		case "suffix", "echo", "best_of", "logprobs", "messages", "top_logprobs":
			c.Member(m.key.Start, m.value.End, false)
		case paramPrompt:
			keep := len(r.Prompts) == 1 && r.History.IsZero()
			if c.Member(m.key.Start, m.value.End, keep); keep {
				out := c.Edit(m.key.Start, m.value.End)
				*out = append(append(*out, `"messages":[`...), r.UserMessage()...)
				*out = append(*out, ']')
			}
		default:
			c.Member(m.key.Start, m.value.End, true)
		}
	}
	if !r.History.IsZero() {
		c.Add([]byte(`"messages":`), r.History.Of(r.body))
	}
	if r.logprobs >= 0 {
		c.Add([]byte(`"logprobs":true`))
	}
	if r.logprobs > 0 {
		c.Add([]byte(`"top_logprobs":`), strconv.AppendInt(nil, int64(r.logprobs), 10))
	}
	return c.End()
}

// UserMessage is the one prompt as a message of the user.
func (r *CompletionRequest) UserMessage() []byte {
	out := append([]byte(`{"role":"user","content":`), r.Prompts[0].Of(r.body)...)
	return append(out, '}')
}
