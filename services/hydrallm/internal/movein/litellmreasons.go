package movein

// Why parts of LiteLLM's configuration are not taken.

const (
	upstreamRates = "limits by the minute are those of client keys here (POST /v1/admin/client-keys), not of upstreams; after a 429 the next upstream is asked"
	keyBudgets    = "budgets are those of client keys here (POST /v1/admin/client-keys)"
	sharedState   = "state is shared over NATS, without Redis"
	ownStatistics = "metrics, traces and the ledger are built in (docs/operations.md)"
	noCache       = "answers are not cached; a repeated request is known by its Idempotency-Key"
	noRetryPolicy = "what is tried again is decided by the kind of failure"
)

var liteLLMRoot = map[string]string{
	"guardrails":             "there are no guardrails",
	"policies":               "there are no guardrails",
	"mcp_servers":            "tools of MCP servers are called by clients",
	"vector_store_registry":  "there are no vector stores",
	"callback_settings":      ownStatistics,
	"finetune_settings":      "there is no fine-tuning",
	"files_settings":         "there are no files",
	"assistant_settings":     "there are no assistants",
	"prompts":                "there are no stored prompts",
	"agent_list":             "agents of others are not called",
	"search_tools":           "search engines are set in web.search",
	"default_vertex_config":  "Vertex AI has no counterpart",
	"environment_variables":  "nothing that is taken over names these variables",
	"router_budget_settings": keyBudgets,
}

var liteLLMGeneral = map[string]string{
	"database_url":                        "the gateway makes a database of its own (sessions.database); LiteLLM's is of no use to it. Keys, teams and usage that are in there stay there",
	"database_connection_pool_limit":      "belongs to LiteLLM's database",
	"database_connection_timeout":         "belongs to LiteLLM's database",
	"store_model_in_db":                   "models are in the configuration",
	"alerting":                            "alerts are rules for Prometheus (docs/operations.md)",
	"alerting_threshold":                  "alerts are rules for Prometheus (docs/operations.md)",
	"alert_types":                         "alerts are rules for Prometheus (docs/operations.md)",
	"pass_through_endpoints":              "only the routes of the API are served",
	"background_health_checks":            "the health of providers is that of the calls to them",
	"health_check_interval":               "the health of providers is that of the calls to them",
	"global_max_parallel_requests":        "there is no limit of all requests together; server.max_connections is one of connections",
	"max_budget":                          keyBudgets,
	"budget_duration":                     keyBudgets,
	"completion_model":                    "requests without a model are routed automatically",
	"custom_auth":                         "clients have keys",
	"enable_jwt_auth":                     "clients have keys",
	"litellm_jwtauth":                     "clients have keys",
	"allowed_ips":                         "is the affair of a reverse proxy",
	"ui_access_mode":                      "the web interface opens with the admin key",
	"key_management_system":               "secrets are environment variables",
	"key_management_settings":             "secrets are environment variables",
	"disable_spend_logs":                  "usage is always in the ledger",
	"maximum_spend_logs_retention_period": "the ledger has no such limit; sessions have sessions.retention_days",
	"forward_client_headers_to_llm_api":   "headers of clients are not passed on, but for those of the protocols",
}

var liteLLMSettings = map[string]string{
	"callbacks": ownStatistics, "success_callback": ownStatistics, "failure_callback": ownStatistics, "service_callbacks": ownStatistics,
	"turn_off_message_logging": "the texts of requests are never logged", "redact_user_api_key_info": "keys are never logged", "langfuse_default_tags": ownStatistics,
	"cache": noCache, "cache_params": noCache,
	"drop_params":                    "requests for auto are fitted to their provider; those for a named model go out as they are",
	"modify_params":                  "requests for auto are fitted to their provider; those for a named model go out as they are",
	"context_window_fallbacks":       "a request that is too large for a model is an error of it here",
	"content_policy_fallbacks":       "a request that a provider refuses is answered with its refusal",
	"max_budget":                     keyBudgets,
	"budget_duration":                keyBudgets,
	"max_internal_user_budget":       keyBudgets,
	"upperbound_key_generate_params": "client keys are made by the admin alone", "default_key_generate_params": "client keys are made by the admin alone",
	"key_generation_settings": "client keys are made by the admin alone", "default_team_settings": "there are no teams",
	"mcp_aliases": "tools of MCP servers are called by clients", "enable_preview_features": "there are none",
	"ssl_verify": "certificates are always verified", "force_ipv4": "is the affair of the system",
	"redis_host": sharedState,
}

var liteLLMRouter = map[string]string{
	"redis_host": sharedState, "redis_port": sharedState, "redis_password": sharedState, "redis_url": sharedState, "redis_db": sharedState, "cache_responses": noCache,
	"retry_policy": noRetryPolicy, "model_group_retry_policy": noRetryPolicy, "allowed_fails_policy": noRetryPolicy, "retry_after": "the next upstream is asked at once",
	"disable_cooldowns":        "a failing upstream always rests (resilience.breaker)",
	"enable_pre_call_checks":   "a request that is too large for a model is an error of it here",
	"context_window_fallbacks": "a request that is too large for a model is an error of it here",
	"content_policy_fallbacks": "a request that a provider refuses is answered with its refusal",
	"provider_budget_config":   keyBudgets, "enable_tag_filtering": "there are no tags", "tag_filtering_match_any": "there are no tags",
	"optional_pre_call_checks": "a conversation keeps its provider where session_header is set", "routing_strategy_args": "there are no strategies",
	"max_fallbacks": "resilience.max_hops is how many upstreams a request may ask", "stream_timeout": "streams have resilience.headers_timeout and idle_timeout",
	"default_litellm_params": "defaults belong to providers, upstreams and models",
}

var liteLLMEntry = map[string]string{"rpm": upstreamRates, "tpm": upstreamRates}

var liteLLMParams = map[string]string{
	"rpm": upstreamRates, "tpm": upstreamRates, "itpm": upstreamRates, "otpm": upstreamRates, "default_api_key_rpm_limit": upstreamRates, "default_api_key_tpm_limit": upstreamRates,
	"max_budget": keyBudgets, "budget_duration": keyBudgets,
	"max_retries": noRetryPolicy, "num_retries": noRetryPolicy, "stream_timeout": "streams have resilience.headers_timeout and idle_timeout",
	"cooldown_time": "resilience.breaker.channel is for all upstreams", "drop_params": "requests for a named model go out as they are",
	"additional_drop_params": "requests for a named model go out as they are", "tags": "there are no tags", "region_name": "providers have addresses, and no regions",
	"guardrails": "there are no guardrails", "mock_response": "hydrallm mock answers without a provider", "organization": "only one organization is possible here",
	"api_version": "OpenAI's protocol has no version of this kind", "use_in_pass_through": "only the routes of the API are served",
	"configurable_clientside_auth_params": "clients can't choose addresses and keys of providers",
	"cache_control_injection_points":      "marks for caches are those of the client",
	"output_cost_per_token":               "a price needs that of the input",
}

//nolint:gosec // reasons, no credentials
var liteLLMInfo = map[string]string{
	"id": "upstreams have ids of their own", "mode": "the route of a request tells what it is", "base_model": "is for LiteLLM's table of prices",
	"max_tokens": "limits of models are not set here; defaults can be", "max_input_tokens": "limits of models are not set here", "max_output_tokens": "limits of models are not set here",
	"supported_environments": "each environment has a configuration of its own", "access_groups": "client keys have lists of models (allowed_models)",
	"supports_function_calling": "what models can do is read from their providers", "supports_vision": "what models can do is read from their providers",
	"custom_tokenizer": "tokens are estimated", "version": "says nothing about how requests go", "description": "says nothing about how requests go",
}
