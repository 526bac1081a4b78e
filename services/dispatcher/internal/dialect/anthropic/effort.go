package anthropic

import (
	"strconv"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// minBudget is the least that the API takes.
const minBudget = 1024

// efforts gives the budget and the effort for each reasoning_effort.
var efforts = map[string]struct {
	budget int64
	effort string
}{
	"minimal": {minBudget, "low"},
	"low":     {2048, "low"},
	"medium":  {8192, "medium"},
	"high":    {16384, "high"},
	"xhigh":   {24576, "xhigh"},
	"max":     {24576, "max"},
}

// readThinking decides whether and how the model thinks: as the member thinking says, or else reasoning_effort. The latter is a wish, which
// gives way where the API would refuse the request for it.
func (r *request) readThinking() error {
	name := rawjson.Text(r.in["reasoning_effort"])
	wish, known := efforts[name]
	if !known && name != "" && name != "none" || r.in["reasoning_effort"] != nil && name == "" {
		return refuse(openai.CodeInvalidValue, "reasoning_effort", "must be one of none, minimal, low, medium, high, xhigh and max")
	}
	if known && r.model.adaptive {
		if r.effort = wish.effort; r.effort == "xhigh" && !r.model.xhigh {
			r.effort = "max"
		}
	}
	switch {
	case r.in["thinking"] != nil:
		r.thinking = r.in["thinking"]
	case name == "none" && (r.model.adaptive || r.model.budget):
		r.thinking = typed("disabled").end()
	case !known || r.forced: // a call can't be forced on a model that thinks
	case r.model.adaptive:
		r.thinking = typed("adaptive").set("display", []byte(`"summarized"`)).end() // new models hide it unless asked
	case r.model.budget && r.chat.thinks():
		r.setBudget(wish.budget)
	}
	return nil
}

// setBudget leaves at least half of the tokens that the client allows to the answer, or gives up thinking if they are too few.
func (r *request) setBudget(budget int64) {
	if r.maxTokens == nil {
		r.maxTokens = strconv.AppendInt(nil, DefaultMaxTokens+budget, 10)
	} else {
		limit, err := strconv.ParseInt(string(r.maxTokens), 10, 64)
		if budget = min(budget, limit/2); err != nil || budget < minBudget {
			return
		}
	}
	r.thinking = typed("enabled").set("budget_tokens", strconv.AppendInt(nil, budget, 10)).end()
}

// thinks says whether thinking is on.
func (r *request) thinks() bool {
	return r.thinking != nil && !rawjson.Is(rawjson.Get(r.thinking, "type"), "disabled")
}

// outputConfig gives the effort and the JSON schema of the answer. What the client set itself comes first. Models that know no schema get
// none, and schemas that can't be said are left out: the answer may then have another form, but what the client asked for in words stands.
func (r *request) outputConfig() []byte {
	given := r.in["output_config"]
	own := rawjson.Given(given)
	out := fields(nil)
	if len(own) > 0 {
		out = append(out, given[:len(given)-1]...)
	}
	if r.effort != "" && own["effort"] == nil {
		out = out.set("effort", quote(r.effort))
	}
	wanted := rawjson.Given(r.in["response_format"])
	schema := rawjson.Given(wanted["json_schema"])["schema"]
	if rawjson.Text(wanted["type"]) == "json_schema" && schema != nil && r.model.schema && own["format"] == nil {
		if schema = outputSchema(schema); schema != nil {
			out = out.set("format", typed("json_schema").set("schema", schema).end())
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out.end()
}
