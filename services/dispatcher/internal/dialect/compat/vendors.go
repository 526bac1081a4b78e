package compat

import "maps"

// Groups of reasoning_effort that several vendors share.
var (
	toThree       = map[string]string{"minimal": "low", "low": "low", "medium": "medium", "high": "high", "xhigh": "high", "max": "high", "ultra": "high"}
	noneToThree   = with(toThree, "none", "none")
	noneToLow     = with(toThree, "none", "low")
	onOrOff       = map[string]string{"none": "none", "default": "default", "minimal": "default", "low": "default", "medium": "default", "high": "default", "xhigh": "default", "max": "default", "ultra": "default"}
	noneOrHigh    = map[string]string{"none": "none", "minimal": "none", "low": "high", "medium": "high", "high": "high", "xhigh": "high", "max": "high", "ultra": "high"}
	ollamaEfforts = with(toThree, "none", "none", "xhigh", "max", "max", "max", "ultra", "max")
	left          = map[string]string{}
)

// notUser are the roles whose content can be a string without loss.
var notUser = map[role]bool{systemRole: true, developerRole: true, assistantRole: true, toolRole: true}

// foreignMembers are members of requests that belong to other vendors and local engines.
var foreignMembers = []string{
	"cache_control", "cachePoint", "chat_template_kwargs", "enable_thinking", "extra_body", "guided_choice", "guided_json", "guided_regex",
	"include_reasoning", "keep_alive", "min_p", "models", "num_ctx", "options", "plugins", "prompt_mode", "provider", "random_seed", "reasoning",
	"reasoning_format", "reasoning_split", "repetition_penalty", "safe_prompt", "safety_settings", "think", "thinking", "top_k", "transforms",
	"usage",
}

// foreignInMessages are members of messages and their parts that answers of other vendors have, and that clients send back with the history.
var foreignInMessages = []string{
	"cache_control", "extra_content", "provider_specific_fields", "reasoning", "reasoning_content", "reasoning_details", "thinking",
	"thinking_blocks",
}

// vendors has the habits of each vendor by its name. A vendor that is missing gets requests as they are.
var vendors = map[string]*rules{
	// Refuses unknown members, in messages too, and max_tokens for models that reason.
	"openai": {
		leaves: foreignMembers, limit: "max_completion_tokens", fixedSampling: true, choice: choice{allowed: true},
		foreign: foreignInMessages, inCall: []string{"id", "type", "function", "custom"}, ids: idRule{most: 40},
	},
	// The endpoint for OpenAI's protocol: 400 "Unknown name" for every member that it does not know.
	"gemini": {
		takes: []string{
			"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "n", "stop", "tools",
			"tool_choice", "response_format", "reasoning_effort", "extra_body", "functions", "function_call",
		},
		usage: true, thinkingConfig: true,
		efforts: []effort{
			{models: []string{"-pro"}, as: noneToLow}, // which always think
			{as: noneToThree},
		},
		inMessage: map[role][]string{
			systemRole: {"role", "content", "name"}, developerRole: {"role", "content", "name"}, userRole: {"role", "content", "name"},
			assistantRole: {"role", "content", "name", "tool_calls", "function_call"}, toolRole: {"role", "content", "name", "tool_call_id"},
		},
		noPrompt: true, flat: notUser, noEmpty: true, named: true,
		empty:  map[role]bool{systemRole: true, developerRole: true, userRole: true, assistantRole: true},
		inPart: []string{"type", "text", "image_url", "input_audio", "file"},
		inCall: []string{"id", "type", "function", "custom", "extra_content"},
	},
	// 400 "property is unsupported" for what it does not know, and for logprobs, logit_bias, names of who speaks and n other than 1. The name of a
	// system message, such as web_context, it knows.
	"groq": {
		takes: []string{
			"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p", "stop", "seed",
			"presence_penalty", "frequency_penalty", "tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort",
			"reasoning_format", "include_reasoning", "service_tier", "user", "search_settings", "disable_tool_validation", "compound_custom",
			"citation_options", "documents", "include_domains", "exclude_domains", "functions", "function_call",
		},
		usage: true, reasoningFormat: true,
		efforts: []effort{
			{models: []string{"qwen3.8", "qwen-3.8"}, as: with(noneToThree, "default", "default")},
			{models: []string{"qwen"}, as: onOrOff},
			{models: []string{"gpt-oss"}, as: noneToLow},
			{as: left},
		},
		inMessage: map[role][]string{
			systemRole: {"role", "content", "name"}, developerRole: {"role", "content"}, userRole: {"role", "content"},
			assistantRole: {"role", "content", "reasoning", "tool_calls", "function_call"}, toolRole: {"role", "content", "tool_call_id"},
		},
		reasoned: "reasoning", flat: notUser,
		inPart: []string{"type", "text", "image_url", "document"},
		inCall: []string{"id", "type", "function", "custom"},
	},
	// 400 wrong_api_format for what it does not know.
	"cerebras": {
		takes: []string{
			"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "min_tokens", "min_completion_tokens",
			"temperature", "top_p", "n", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "tools",
			"tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "reasoning_format", "disable_reasoning", "clear_thinking",
			"model_parameters", "prediction", "prompt_cache_key", "service_tier", "user",
		},
		usage: true, efforts: []effort{{as: noneToThree}}, temperature: temperatureRange{high: 1.5, highText: "1.5"},
		inMessage: map[role][]string{
			systemRole: {"role", "content", "name"}, developerRole: {"role", "content", "name"}, userRole: {"role", "content", "name"},
			assistantRole: {"role", "content", "name", "reasoning", "tool_calls"}, toolRole: {"role", "content", "name", "tool_call_id"},
		},
		reasoned: "reasoning", flat: notUser,
		inPart: []string{"type", "text", "image_url", "image"},
		inCall: []string{"id", "type", "function", "custom", "index"},
	},
	// 422 extra_forbidden for what it does not know. Ids of tool calls and the order of roles are checked.
	"mistral": {
		takes: []string{
			"model", "messages", "stream", "max_tokens", "temperature", "top_p", "n", "stop", "random_seed", "presence_penalty", "frequency_penalty",
			"tools", "tool_choice", "parallel_tool_calls", "response_format", "reasoning_effort", "prompt_mode", "prediction", "prompt_cache_key",
			"metadata", "guardrails", "safe_prompt",
		},
		limit: "max_tokens", rename: [][2]string{{"seed", "random_seed"}},
		efforts: []effort{
			{models: []string{"mistral-small-latest", "mistral-small-26", "mistral-small-4", "mistral-medium-3-5", "mistral-medium-3.5"}, as: noneOrHigh},
			{as: left},
		},
		temperature: temperatureRange{high: 1.5, highText: "1.5"}, choice: choice{any: true},
		inMessage: map[role][]string{
			systemRole: {"role", "content"}, developerRole: {"role", "content"}, userRole: {"role", "content"},
			assistantRole: {"role", "content", "tool_calls", "prefix"}, toolRole: {"role", "content", "tool_call_id", "name"},
		},
		noPrompt: true, plainURL: true, bridge: true, prefix: true, ids: idRule{exact: 9},
		empty: map[role]bool{assistantRole: true},
		inPart: []string{
			"type", "text", "image_url", "document_url", "document_name", "file_id", "reference_ids", "thinking", "signature", "closed", "input_audio",
		},
		inCall: []string{"id", "type", "function", "index"},
	},
	// Ignores what it does not know, which max_completion_tokens is. Contents are strings, and reasoning comes back with the history.
	"deepseek": {
		limit: "max_tokens", efforts: []effort{{off: true}},
		reasoned: "reasoning_content", replays: true, noPrompt: true, keepsCacheControl: true,
		flat: map[role]bool{systemRole: true, developerRole: true, userRole: true, assistantRole: true, toolRole: true},
	},
	// Does not take what its documentation calls unsupported; the temperature is above 0.
	"minimax": {
		leaves: []string{
			"response_format", "seed", "presence_penalty", "frequency_penalty", "parallel_tool_calls", "logit_bias", "logprobs", "top_logprobs", "n",
		},
		limit: "max_completion_tokens", temperature: temperatureRange{low: 0.01, high: 1, lowText: "0.01", highText: "1"}, choice: choice{ignored: true},
		efforts:  []effort{{models: []string{"minimax-m3"}, off: true, as: left}, {as: left}},
		noPrompt: true, keepsCacheControl: true,
	},
	// Takes everything and translates it for whoever answers.
	"openrouter": nil,
	"ollama": {
		limit: "max_tokens", efforts: []effort{{as: ollamaEfforts}}, choice: choice{ignored: true}, noPrompt: true, keepsCacheControl: true,
	},
	"vllm":     {noPrompt: true, keepsCacheControl: true},
	"llamacpp": {limit: "max_tokens", noPrompt: true, keepsCacheControl: true},
	// 400 for a tool_choice that is an object, and for response_format json_object.
	"lmstudio": {limit: "max_tokens", choice: choice{unnamed: true}, noJSONMode: true, noPrompt: true, keepsCacheControl: true},
}

// with is a copy of a table with further pairs.
func with(table map[string]string, pairs ...string) map[string]string {
	all := maps.Clone(table)
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return all
}
