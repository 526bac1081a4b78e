package classify

import "strings"

// specific holds the codes that say more than a status: they count beside a 4xx status as well as without one. Keys are lower case and
// stand for error.code, error.type, Google's status and reason, and OpenCode's name alike.
var specific = map[string]Class{
	"insufficient_quota":                Quota,
	"credit_balance_exhausted":          Quota,
	"organization_spend_limit_exceeded": Quota,
	"project_spend_limit_exceeded":      Quota,
	"organization_usage_limit_exceeded": Quota,
	"enforced_spend_limit_reached":      Quota,
	"billing_hard_limit_reached":        Quota,
	"billing_error":                     Quota,
	"billing_not_active":                Quota,
	"insufficient_balance":              Quota,
	"insufficient_credits":              Quota,
	"servicequotaexceededexception":     Quota,

	"rate_limit_exceeded":      Rate,
	"rate_limit_error":         Rate,
	"rate_limited":             Rate,
	"too_many_requests_error":  Rate,
	"request_quota_exceeded":   Rate,
	"token_quota_exceeded":     Rate,
	"resource_exhausted":       Rate,
	"throttlingexception":      Rate, // Amazon
	"toomanyrequestsexception": Rate,

	"slow_down":                      Upstream,
	"server_is_overloaded":           Upstream,
	"overloaded_error":               Upstream,
	"queue_exceeded":                 Upstream,
	"capacity_exceeded":              Upstream,
	"service_tier_capacity_exceeded": Upstream,
	"3505":                           Upstream, // Mistral: capacity of the model
	"unavailable_error":              Upstream,
	"model_load_failed":              Upstream, // LM Studio
	"serviceunavailableexception":    Upstream,
	"internalserverexception":        Upstream,
	"modelnotreadyexception":         Upstream,
	"modeltimeoutexception":          Upstream,
	"modelerrorexception":            Upstream,

	"api_key_invalid":             Auth,
	"invalid_api_key":             Auth,
	"wrong_api_key":               Auth,
	"authentication_error":        Auth,
	"authorized_error":            Auth,
	"unauthenticated":             Auth,
	"providerautherror":           Auth,
	"invalid_api_key_error":       Auth,
	"incorrect_api_key":           Auth,
	"api_key_expired":             Auth,
	"api_key_revoked":             Auth,
	"account_deactivated":         Auth,
	"account_suspended":           Auth,
	"account_disabled":            Auth,
	"access_terminated":           Auth,
	"organization_restricted":     Auth, // Groq
	"organization_disabled":       Auth,
	"unrecognizedclientexception": Auth,
	"invalidsignatureexception":   Auth,
	"expiredtokenexception":       Auth,
	"incompletesignature":         Auth,

	"failed_precondition":                  Forbidden, // Google: region, or billing is needed there
	"unsupported_country_region_territory": Forbidden,
	"permission_denied":                    Forbidden,
	"permission_error":                     Forbidden,
	"permissions_error":                    Forbidden,
	"accessdeniedexception":                Forbidden,

	"model_not_found":           Model,
	"model_decommissioned":      Model,
	"model_deprecated":          Model,
	"model_not_available":       Model,
	"model_not_supported":       Model,
	"model_terms_required":      Model, // Groq: the organization has not accepted the terms of the model
	"invalid_model":             Model, // Mistral, whose number for it is 1500
	"1500":                      Model,
	"unknown_model":             Model,
	"unsupported_model":         Model,
	"resourcenotfoundexception": Model,

	"tool_use_failed":       BadOutput,
	"json_validate_failed":  BadOutput,
	"structuredoutputerror": BadOutput,

	"context_length_exceeded":   Size,
	"exceed_context_size_error": Size,
	"request_too_large":         Size,
	"contextoverflowerror":      Size,
}

// generic holds the codes that say no more than a status would; they count when there is no status.
var generic = map[string]Class{
	"invalid_request_error": Client,
	"invalid_argument":      Client,
	"badrequesterror":       Client,
	"bad_request":           Client,
	"contentfiltererror":    Client,
	"not_found_error":       Model,
	"notfounderror":         Model,
	"not_found":             Model,
}

// baseCodes are the inner statuses of MiniMax.
var baseCodes = map[int]Class{
	1000: Upstream, 1001: Upstream, 1013: Upstream, 1024: Upstream, 1033: Upstream,
	1002: Rate, 1039: Rate, 1041: Rate,
	1004: Auth, 2049: Auth,
	1008: Quota, 2056: Quota,
	1026: Client, 1027: Client, 1042: Client, 2013: Client,
}

// byCode gives the class of the first code that is in the table.
func byCode(table map[string]Class, p *problem) (Class, bool) {
	for _, code := range p.codes() {
		if code == "" {
			continue
		}
		if c, ok := table[strings.ToLower(code)]; ok {
			return c, true
		}
	}
	return "", false
}

// openings are beginnings of messages that decide although status and code look like the client's fault. A message may quote the client's
// own words, so only its beginning counts, and only when no parameter is named.
var openings = []struct {
	text  string
	class Class
}{
	{"your account is not active", Quota},
	{"insufficient balance", Quota},
	{"insufficient credit", Quota},
	{"you have insufficient", Quota},
	{"your credit balance is too low", Quota},
	{"you have reached your specified api usage limits", Quota},
	{"user location is not supported", Forbidden},
	{"the model has crashed", Upstream},
	{"model has crashed", Upstream},
	{"failed to load model", Upstream},
	{"error loading model", Upstream},
	{"model unloaded", Upstream},
	{"model is unloaded", Upstream},
	{"no models loaded", Upstream},
	{"loading model", Upstream},
	{"model is loading", Upstream},
	{"model is still loading", Upstream},
}

func byOpening(p *problem) (Class, bool) {
	if p.param != "" {
		return "", false
	}
	message := strings.ToLower(strings.TrimSpace(p.message))
	for _, o := range openings {
		if strings.HasPrefix(message, o.text) {
			return o.class, true
		}
	}
	if keyIsBad(message) {
		return Auth, true
	}
	return "", false
}

// keyIsBad tells whether a message, in lower case, is about a key or an account that is no good any more.
func keyIsBad(message string) bool {
	for _, subject := range [...]string{
		"api key", "invalid api key", "incorrect api key", "your api key", "this api key", "the api key", "the provided api key", "your account", "this account",
		"organization", "your organization", "this organization", "the organization",
	} {
		if strings.HasPrefix(message, subject) {
			return containsAny(message, "invalid", "incorrect", "not valid", "expired", "revoked", "disabled", "deactivated", "suspended", "restricted",
				"banned", "terminated", "blocked", "does not exist", "not found")
		}
	}
	return false
}

// tooLong finds the words by which a message says that the context is too long. They cost nobody anything, so they may stand anywhere.
func tooLong(message string) bool {
	return containsAny(message, "maximum context length", "prompt is too long", "context size", "context length", "context window",
		"exceeds the maximum number of tokens") ||
		containsAny(message, "input token count") && containsAny(message, "exceeds the maximum")
}

func containsAny(message string, words ...string) bool {
	message = strings.ToLower(message)
	for _, w := range words {
		if strings.Contains(message, w) {
			return true
		}
	}
	return false
}

// ofAccount tells whether a refusal is about the account or the project of the key, whatever the model.
func ofAccount(p *problem) bool {
	switch p.reason() {
	case "SERVICE_DISABLED", "API_KEY_SERVICE_BLOCKED", "API_KEY_HTTP_REFERRER_BLOCKED", "API_KEY_IP_ADDRESS_BLOCKED", "BILLING_DISABLED",
		"CONSUMER_INVALID", "ACCOUNT_STATE_INVALID", "USER_PROJECT_DENIED", "SECURITY_POLICY_VIOLATED":
		return true
	}
	return containsAny(p.message, "project has been denied access", "key limit exceeded", "has not been used in project", "account is disabled",
		"account has been disabled", "organization has been disabled", "organization is disabled", "organization has been restricted", "ip address")
}

// noModel tells whether a message says that the model is not there. A message that only mentions the model is none.
func noModel(p *problem) bool {
	if p.param != "" && p.param != "model" {
		return false
	}
	message := strings.ToLower(strings.TrimSpace(p.message))
	for _, opening := range [...]string{"model not exist", "model not found", "model_not_found", "invalid model", "unknown model", "unsupported model", "no such model"} {
		if strings.HasPrefix(message, opening) {
			return true
		}
	}
	if strings.Contains(message, "is not a valid model") || strings.Contains(message, "not a chat model") {
		return true
	}
	for _, opening := range [...]string{"model ", "the model ", "the requested model ", "this model ", "the specified model "} {
		if strings.HasPrefix(message, opening) {
			return containsAny(message, "not exist", "not found", "not available", "no longer available", "deprecated", "decommissioned",
				"end of life", "retired", "shut down", "has been removed", "does not support chat")
		}
	}
	return false
}

// incapable tells whether a message says that the model can't do what the request needs. That costs nobody anything, so the words may stand
// anywhere.
func incapable(message string) bool {
	return containsAny(message, "no endpoints found that support", "tool choice requires", "not support tool", "n't support tool",
		"tools are not supported", "tool use is not supported", "tool calling is not supported", "not support function", "function calling is not",
		"not support image", "n't support image", "image input is not", "image inputs are not", "images are not supported", "image_url is not supported", "not support vision",
		"not a multimodal model", "not multimodal", "content part type is not supported", "not support audio", "audio input is not", "audio is not supported", "not support file",
		"not support thinking", "not support reasoning")
}
