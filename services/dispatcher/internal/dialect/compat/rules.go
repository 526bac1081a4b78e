package compat

import "strings"

// rules are the habits of one vendor. The zero value takes everything as it is; each field is an exception from that.
type rules struct {
	// Members of the request.
	takes       []string         // those that the vendor takes, all others are refused; nil: all
	leaves      []string         // those that it does not take although OpenAI does, or others do
	rename      [][2]string      // those that have another name here: OpenAI's, the vendor's
	limit       string           // the only name it has for max_tokens or max_completion_tokens; "" = both
	efforts     []effort         // what becomes of reasoning_effort: the first that matches the model; nil: stays
	temperature temperatureRange // what becomes of temperature
	choice      choice           // what becomes of tool_choice
	usage       bool             // stream_options has include_usage and nothing else

	noJSONMode      bool // response_format can't be json_object
	fixedSampling   bool // some models refuse temperature and its like, see refusesSampling
	reasoningFormat bool // reasoning_format has conditions
	thinkingConfig  bool // extra_body.google.thinking_config does not go together with reasoning_effort

	// Messages.
	inMessage         map[role][]string // members that a message of this role may have; nil: all
	inPart            []string          // members that a part of a content may have; nil: all
	inCall            []string          // members that a tool call may have; nil: all
	foreign           []string          // members that no message and no part may have
	reasoned          string            // name of the reasoning in a message of the assistant, "reasoning" or "reasoning_content"; "" = as given
	replays           bool              // the reasoning must be there again when the history has tool calls
	noPrompt          bool              // the role developer is not known: such messages are of the system
	flat              map[role]bool     // roles whose content must be a string
	empty             map[role]bool     // roles whose messages must not be empty; such messages are left out
	noEmpty           bool              // parts of text must not be empty
	plainURL          bool              // image_url may be the address itself
	ids               idRule
	named             bool // the result of a tool must name the tool
	bridge            bool // the user can't speak directly after a tool
	prefix            bool // a conversation that ends with the assistant must be marked as one to continue
	keepsCacheControl bool // cache_control, a mark of prompt caches, is ignored in tools; otherwise it is refused
}

// role of a message.
type role uint8

const (
	otherRole role = iota
	systemRole
	developerRole
	userRole
	assistantRole
	toolRole
)

// effort says which values of reasoning_effort a group of models takes.
type effort struct {
	models []string          // parts of their names in lower case; nil: all models
	off    bool              // "none" is said by thinking.type = "disabled"
	as     map[string]string // the value that stands for each; one that is missing is left out. nil: all stay
}

func (e *effort) fits(model string) bool {
	for _, part := range e.models {
		if strings.Contains(model, part) {
			return true
		}
	}
	return e.models == nil
}

// temperatureRange is the range of temperature, as numbers and as they are written when a value is outside. The zero value is no limit.
type temperatureRange struct {
	low, high         float64
	lowText, highText string
}

// choice says which forms of tool_choice a vendor takes beside "auto", "none" and "required".
type choice struct {
	any     bool // "any", which others call "required"
	allowed bool // allowed_tools
	unnamed bool // no single function: "required" comes nearest
	ignored bool // none at all: "none" is said by leaving the tools out
}

// refusesSampling says whether a model of OpenAI refuses temperature and its like: those that always reason, and the newer ones when they are
// told to.
func refusesSampling(model, effort string) bool {
	name := model[strings.LastIndexByte(model, '/')+1:]
	switch {
	case strings.HasPrefix(name, "o1"), strings.HasPrefix(name, "o3"), strings.HasPrefix(name, "o4"):
		return true
	case strings.HasPrefix(name, "gpt-5-chat"):
		return false
	case name == "gpt-5", strings.HasPrefix(name, "gpt-5-"):
		return true
	case strings.HasPrefix(name, "gpt-5."), strings.HasPrefix(name, "gpt-6"):
		return effort != "" && effort != "none"
	}
	return false
}

// isSampling says whether a member of a request is one of those that refusesSampling is about.
func isSampling(name []byte) bool {
	switch string(name) {
	case "temperature", "top_p", "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias":
		return true
	}
	return false
}
