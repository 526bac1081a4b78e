package movein

// Why parts of the configurations of Bifrost, Olla and gpt-load are not taken.

const (
	ownStore     = "the gateway stores in a database of its own (sessions.database)"
	ownHealth    = "the health of providers is that of the calls to them"
	ownDiscovery = "models are discovered at the start, every hour and on demand"
	onlyShown    = "says nothing about how requests go"
	connections  = "connections to providers are the gateway's own affair"
)

var bifrostRoot = map[string]string{
	"config_store": ownStore, "logs_store": ownStore, "vector_store": noCache, "plugins": "there are no plugins", "mcp": "tools of MCP servers are called by clients",
	"framework": "prices are in upstreams[].price", "encryption_key": "keys that are added at run time are encrypted under the admin key", "auth_config": "the admin routes open with server.admin_key",
	"server": connections, "guardrails_config": "there are no guardrails", "source_of_truth": "the file is", "env_label": onlyShown, "cluster_config": sharedState,
	"websocket": "WebSockets are not served", "alerting": "alerts are rules for Prometheus (docs/operations.md)",
}

var bifrostClient = map[string]string{
	"initial_pool_size": connections, "drop_excess_requests": "what waits is set by models[].queue", "prometheus_labels": ownStatistics, "enable_logging": "usage is always in the ledger",
	"disable_content_logging": "the texts of requests are never logged", "log_retention_days": "the ledger has no such limit; sessions have sessions.retention_days",
	"allow_direct_keys": "clients can't choose keys of providers", "enable_governance": "client keys are always there", "header_filter_config": "headers of clients are not passed on",
	"enable_litellm_fallbacks": "fallbacks are the upstreams of a model", "compat": "what a provider does not take is fitted for it", "allowed_headers": "is fixed",
}

var bifrostGovernance = map[string]string{
	"budgets": keyBudgets, "rate_limits": upstreamRates, "customers": "there are keys of clients, and no customers", "teams": "there are keys of clients, and no teams",
	"business_units": "there are keys of clients, and no units", "roles": "there is one admin", "routing_rules": "rules are the order of the upstreams of a model, and routing.priority",
	"pricing_overrides": "prices are in upstreams[].price", "model_configs": upstreamRates, "providers": upstreamRates, "auth_config": "the admin routes open with server.admin_key",
}

var bifrostVirtual = map[string]string{
	"id": onlyShown, "description": onlyShown, "team_id": "there are no teams", "customer_id": "there are no customers", "is_active": onlyShown,
	"provider_configs": "keys of the configuration may use every model; those with a list are made at run time (POST /v1/admin/client-keys)", "mcp_configs": "tools of MCP servers are called by clients",
}

var bifrostProvider = map[string]string{
	"proxy_config": "proxies are those of the environment (HTTPS_PROXY)", "send_back_raw_request": "answers are those of the protocol", "send_back_raw_response": "answers are those of the protocol",
	"store_raw_request_response": "the texts of requests are never logged", "pricing_overrides": "prices are in upstreams[].price", "openai_config": "requests go out as they are",
}

var bifrostNetwork = map[string]string{
	"retry_backoff_initial": "the next key or upstream is asked at once", "retry_backoff_max": "the next key or upstream is asked at once", "insecure_skip_verify": "certificates are always verified",
	"ca_cert_pem": "authorities are those of the system (SSL_CERT_FILE)", "max_conns_per_host": connections, "keep_alive_timeout_in_seconds": connections, "enforce_http2": connections,
	"allow_private_network": "providers may be anywhere", "beta_header_overrides": "beta headers pass through",
}

var bifrostCustom = map[string]string{
	"allowed_requests": "what a provider can do is found by asking it", "request_path_overrides": "paths are those of the protocol", "is_key_less": "a provider without a key needs no word for it",
}

var bifrostKey = map[string]string{
	"use_for_batch_api": "there is no batch API", "blacklisted_models": "models of a key can't be shut out", "description": onlyShown, "scopes": "signing in with Microsoft Entra has no counterpart",
}

var ollaRoot = map[string]string{
	"model_registry": ownDiscovery, "translators": "Anthropic's protocol is always served", "engineering": onlyShown, "dashboard": "the web interface opens with the admin key",
}

var ollaServer = map[string]string{
	"read_timeout": "is fixed", "read_header_timeout": "is fixed", "write_timeout": "streams have no such limit", "idle_timeout": "is fixed", "request_logging": "there is a log line for every event",
	"rate_limits": "limits by the minute are those of client keys here (POST /v1/admin/client-keys)",
}

var ollaProxy = map[string]string{
	"engine": "there is one", "profile": "streams are passed on as they come", "stream_buffer_size": connections, "connection_timeout": connections, "connection_keep_alive": connections,
	"tls_handshake_timeout": connections, "sticky_sessions": "a conversation keeps its provider where session_header is set", "retry": "what is tried again is decided by the kind of failure",
	"max_retries": "what is tried again is decided by the kind of failure", "retry_backoff": "the next provider is asked at once", "profile_filter": "models can't be shut out",
}

var ollaDiscovery = map[string]string{"refresh_interval": ownHealth, "health_check": ownHealth, "model_discovery": ownDiscovery}

var ollaEndpoint = map[string]string{
	"health_check_url": ownHealth, "check_interval": ownHealth, "check_timeout": ownHealth, "model_url": ownDiscovery, "model_filter": "models can't be shut out",
	"preserve_path": "the path of an address is always kept",
}

var ollaLogging = map[string]string{"output": "the log goes to standard output, and to log.file"}

var gptLoadRoot = map[string]string{
	"code": onlyShown, "message": onlyShown, "version": onlyShown, "exported_at": onlyShown, "data": unknown, "sub_groups": "names the groups of a group of groups; export all of them together",
}

var gptLoadGroup = map[string]string{
	"id": onlyShown, "sort": onlyShown, "display_name": onlyShown, "description": onlyShown, "endpoint": "is the address of gpt-load", "created_at": onlyShown, "updated_at": onlyShown,
	"last_validated_at": onlyShown, "effective_config": "is computed from what is taken", "validation_endpoint": "keys are probed by listing models", "test_model": "keys are probed by listing models",
	"model_redirect_strict": "models that are not named can be asked for as well", "upstreams": unknown, "channel_type": onlyShown, "api_keys": unknown,
}

var gptLoadConfig = map[string]string{
	"blacklist_threshold": "a key rests after each failure, for as long as the failure says (resilience.cooldowns)", "failover_status_codes": noRetryPolicy,
	"key_validation_interval_minutes": "keys whose rest is over are probed (resilience.probe_interval)", "key_validation_concurrency": "keys are probed by listing models",
	"key_validation_timeout_seconds": "keys are probed by listing models", "enable_request_body_logging": "the texts of requests are never logged", "proxy_url": "proxies are those of the environment (HTTPS_PROXY)",
	"connect_timeout": connections, "idle_conn_timeout": connections, "max_idle_conns": connections, "max_idle_conns_per_host": connections, "app_url": onlyShown,
	"request_log_retention_days": "the ledger has no such limit", "request_log_write_interval_minutes": "the ledger is written as requests end",
}

var gptLoadKey = map[string]string{
	"id": onlyShown, "key_hash": onlyShown, "group_id": onlyShown, "notes": onlyShown, "request_count": onlyShown, "failure_count": onlyShown, "last_used_at": onlyShown,
	"created_at": onlyShown, "updated_at": onlyShown,
}
