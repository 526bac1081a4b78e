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

	"rate_limit_exceeded":     Rate,
	"rate_limit_error":        Rate,
	"rate_limited":            Rate,
	"too_many_requests_error": Rate,
	"request_quota_exceeded":  Rate,
	"token_quota_exceeded":    Rate,
	"resource_exhausted":      Rate,

	"slow_down":                      Upstream,
	"server_is_overloaded":           Upstream,
	"overloaded_error":               Upstream,
	"queue_exceeded":                 Upstream,
	"capacity_exceeded":              Upstream,
	"service_tier_capacity_exceeded": Upstream,
	"3505":                           Upstream, // Mistral: capacity of the model
	"unavailable_error":              Upstream,

	"api_key_invalid":      Auth,
	"invalid_api_key":      Auth,
	"wrong_api_key":        Auth,
	"authentication_error": Auth,
	"authorized_error":     Auth,
	"unauthenticated":      Auth,
	"providerautherror":    Auth,

	"failed_precondition":                  Forbidden, // Google: region, or billing is needed there
	"unsupported_country_region_territory": Forbidden,
	"permission_denied":                    Forbidden,
	"permission_error":                     Forbidden,
	"permissions_error":                    Forbidden,

	"model_not_found":      Model,
	"model_decommissioned": Model,

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
	{"api key not valid", Auth},
	{"api key expired", Auth},
	{"your credit balance is too low", Quota},
	{"you have reached your specified api usage limits", Quota},
	{"user location is not supported", Forbidden},
	{`"auto" tool choice requires`, BadOutput},
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
	return "", false
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
