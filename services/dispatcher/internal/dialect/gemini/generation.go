package gemini

import (
	"encoding/json"
	"math"
	"strconv"

	"github.com/tidwall/gjson"
)

// generation is the configuration of an answer. Numbers keep the client's text.
type generation struct {
	Temperature        json.RawMessage `json:"temperature,omitempty"`
	TopP               json.RawMessage `json:"topP,omitempty"`
	TopK               json.RawMessage `json:"topK,omitempty"`
	MaxOutputTokens    json.RawMessage `json:"maxOutputTokens,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	CandidateCount     json.RawMessage `json:"candidateCount,omitempty"`
	Seed               json.RawMessage `json:"seed,omitempty"`
	PresencePenalty    json.RawMessage `json:"presencePenalty,omitempty"`
	FrequencyPenalty   json.RawMessage `json:"frequencyPenalty,omitempty"`
	ResponseMimeType   string          `json:"responseMimeType,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	ResponseModalities json.RawMessage `json:"responseModalities,omitempty"`
	ThinkingConfig     json.RawMessage `json:"thinkingConfig,omitempty"`
	ImageConfig        json.RawMessage `json:"imageConfig,omitempty"`
	SpeechConfig       json.RawMessage `json:"speechConfig,omitempty"`
	MediaResolution    json.RawMessage `json:"mediaResolution,omitempty"`
}

// maxStops is how many stop sequences Gemini takes.
const maxStops = 5

func (r *request) generation() error {
	g := &r.native.GenerationConfig
	for _, m := range []struct {
		name string
		to   *json.RawMessage
	}{
		{"temperature", &g.Temperature},
		{"top_p", &g.TopP},
		{"top_k", &g.TopK},
		{"max_tokens", &g.MaxOutputTokens},
		{"max_completion_tokens", &g.MaxOutputTokens}, // wins over its old name
		{"n", &g.CandidateCount},
		{"seed", &g.Seed},
		{"presence_penalty", &g.PresencePenalty},
		{"frequency_penalty", &g.FrequencyPenalty},
	} {
		v := r.members[m.name]
		if !v.Exists() {
			continue
		}
		if v.Type != gjson.Number {
			return refuse(m.name, "must be a number")
		}
		*m.to = json.RawMessage(v.Raw)
	}
	if string(g.CandidateCount) == "1" { // the default, which not every model lets one state
		g.CandidateCount = nil
	}
	if !r.family.Penalizes() {
		g.PresencePenalty, g.FrequencyPenalty = nil, nil
	}
	g.Seed = smallSeed(g.Seed)
	for _, translate := range []func() error{r.stop, r.format, r.modalities, r.effort} {
		if err := translate(); err != nil {
			return err
		}
	}
	return nil
}

// smallSeed brings a seed into the 32 bits that Gemini has for it: the same seed still gives the same answer.
func smallSeed(raw json.RawMessage) json.RawMessage {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n >= math.MinInt32 && n <= math.MaxInt32 {
		return raw
	}
	return strconv.AppendInt(nil, n%math.MaxInt32, 10)
}

func (r *request) stop() error {
	v := r.members["stop"]
	if !v.Exists() {
		return nil
	}
	if v.Type != gjson.String && !v.IsArray() {
		return refuse("stop", "must be a string or an array of strings")
	}
	for i, s := range v.Array() {
		if s.Type != gjson.String {
			return refuse("stop["+strconv.Itoa(i)+"]", "must be a string")
		}
		if s.Str != "" {
			r.native.GenerationConfig.StopSequences = append(r.native.GenerationConfig.StopSequences, s.Str)
		}
	}
	if len(r.native.GenerationConfig.StopSequences) > maxStops {
		return refuse("stop", "can have at most "+strconv.Itoa(maxStops)+" sequences with this model")
	}
	return nil
}

func (r *request) format() error {
	v := r.members["response_format"]
	if !v.Exists() {
		return nil
	}
	g := &r.native.GenerationConfig
	switch kind := v.Get("type").Str; kind {
	case "text":
	case "json_object":
		g.ResponseMimeType = "application/json"
	case "json_schema":
		schema := v.Get("json_schema.schema")
		if !schema.IsObject() {
			return refuse("response_format.json_schema.schema", "must be an object")
		}
		g.ResponseMimeType, g.ResponseJSONSchema = "application/json", json.RawMessage(schema.Raw)
	default:
		return refuse("response_format.type", "is a format that this model does not know: "+quote(kind))
	}
	if !r.family.Formats() || len(r.native.Tools) > 0 && !r.family.FormatsCalls() {
		g.ResponseMimeType, g.ResponseJSONSchema = "", nil // the call goes through, and what the messages ask for stands
	}
	return nil
}

// modalities asks for images beside text. Text alone is what all models give.
func (r *request) modalities() error {
	for i, m := range r.members["modalities"].Array() {
		switch m.Str {
		case "text":
		case "image":
			r.native.GenerationConfig.ResponseModalities = json.RawMessage(`["TEXT","IMAGE"]`)
		default:
			return refuse("modalities["+strconv.Itoa(i)+"]", "is a kind of output that this model does not give: "+quote(m.Str))
		}
	}
	return nil
}

// thinking is a thinkingConfig. Since Gemini 3 it has a level, before that a budget in tokens.
type thinking struct {
	Level   string `json:"thinkingLevel,omitempty"`
	Budget  *int   `json:"thinkingBudget,omitempty"`
	Include bool   `json:"includeThoughts,omitempty"`
}

// leastProBudget is the smallest budget of the 2.5 models that always think.
const leastProBudget = 128

// effort translates reasoning_effort. Who asks for an effort also gets to see the thoughts.
func (r *request) effort() error {
	v := r.members["reasoning_effort"]
	if !v.Exists() {
		return nil
	}
	level, budget := "", 0
	switch v.Str {
	case "none":
		level = "MINIMAL"
		if r.family.pro() {
			budget = leastProBudget
		}
	case "minimal":
		level, budget = "MINIMAL", 1024
	case "low":
		level, budget = "LOW", 1024
	case "medium":
		level, budget = "MEDIUM", 8192
	case "high", "xhigh", "max":
		level, budget = "HIGH", 24576
	default:
		return refuse("reasoning_effort", "must be one of none, minimal, low, medium, high, xhigh, max")
	}
	if !r.family.thinks() {
		return nil
	}
	t := thinking{Include: v.Str != "none"}
	switch {
	case r.family.begins("gemini-2"):
		t.Budget = &budget
	case level == "MINIMAL" && r.family.pro():
		t.Level = "LOW"
	default:
		t.Level = level
	}
	raw, err := json.Marshal(t)
	r.native.GenerationConfig.ThinkingConfig = raw
	return err
}
