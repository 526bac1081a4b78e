package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

const one = `
providers: [{id: pa, url: "http://h/v1", key: "key-for-a-5d41402abc4b2a76"}]
upstreams: [{id: a1, provider: pa, model: real-a}]
models: [{name: m, upstreams: [a1]}]
`

// Each case lists all errors of its text, without "config.yaml:".
var errorCases = map[string]struct {
	text string
	want []string
}{
	// the table.
	"unknown provider":         {"upstreams:\n- {id: a, provider: nowhere, model: m}", []string{`2: upstreams[0].provider: there is no provider "nowhere"`}}, // C-12
	"duplicate provider":       {"providers:\n- {id: twin, url: http://h}\n- {id: twin, url: http://h}", []string{`3: providers[1].id: "twin" is given twice: providers[0] has it too`}},
	"none":                     {one, nil},
	"duplicate upstream":       {"providers: [{id: p, url: http://h}]\nupstreams:\n- {id: u, provider: p, model: a}\n- {id: u, provider: p, model: b}", []string{`4: upstreams[1].id: "u" is given twice: upstreams[0] has it too`}},
	"duplicate model":          {"models: [{name: twin, upstreams: []}, {name: twin, upstreams: []}]", []string{`1: models[1].name: "twin" is given twice: models[0] has it too`}},
	"negative limit":           {"providers:\n- {id: p, url: http://h, max_concurrency: -3}", []string{"2: providers[0].max_concurrency: must not be negative (got -3)"}},
	"limit is no number":       {"providers: [{id: p, url: http://h, max_concurrency: many}]", []string{`1: providers[0].max_concurrency: must be a whole number from 0 to 2147483647 (got "many")`}},
	"port out of range":        {"server: {port: 70000}", []string{"1: server.port: must be from 1 to 65535 (got 70000)"}},
	"port zero":                {"server: {port: 0}", []string{"1: server.port: must be from 1 to 65535 (got 0)"}},
	"half of TLS":              {"server: {tls: {cert_file: c}}", []string{"1: server.tls: cert_file and key_file go together"}},
	"TLS that is too old":      {"server: {tls: {min_version: 1.1}}", []string{`1: server.tls.min_version: must be one of 1.2, 1.3 (got "1.1"): did you mean 1.2?`}},
	"port is a word":           {"server:\n  port: eighty", []string{`2: server.port: must be a whole number from 1 to 65535 (got "eighty")`}},
	"patch is a list":          {"models:\n- {name: m, upstreams: [], patch: [1]}", []string{"2: models[0].patch: must be a mapping (got a list)"}},
	"patch is text":            {"models: [{name: m, upstreams: [], patch: x}]", []string{"1: models[0].patch: must be a mapping (got a single value)"}},
	"missing fields":           {"providers: [{}]\nupstreams: [{}]\nmodels:\n- {}", []string{"1: providers[0].id: is missing", "1: providers[0].url: is missing", "2: upstreams[0].id: is missing", "2: upstreams[0].provider: is missing", "2: upstreams[0].model: is missing", "4: models[0].name: is missing", "4: models[0].upstreams: is missing, and no upstream has a model of this name"}},
	"empty fields":             {`providers: [{id: "", url: http://h}]`, []string{"1: providers[0].id: must not be empty"}},
	"a name that is too long":  {"models: [{name: " + strings.Repeat("n", 513) + ", upstreams: []}]", []string{"1: models[0].name: must not be longer than 512 bytes (got 513): no request could name it"}},
	"an empty url is missing":  {"providers: [{id: p, url: \"\", key: k}, {id: q, url: \"${EMPTY:-}\", key: k}]", []string{"1: providers[0].url: is missing", "1: providers[1].url: is missing"}},
	"null is missing":          {"upstreams: [{id: u, provider: ~, model: m}]", []string{"1: upstreams[0].provider: is missing"}},
	"list is a mapping":        {"models: [{name: m, upstreams: {a: 1}}]", []string{"1: models[0].upstreams: must be a list (got a mapping)"}},
	"list is text":             {"models: [{name: m, upstreams: a1}]", []string{"1: models[0].upstreams: must be a list (got a single value)"}},
	"list holds a list":        {"models: [{name: m, upstreams: [[a1]]}]", []string{"1: models[0].upstreams[0]: must be text (got a list)"}},
	"section is a list":        {"server: [1]", []string{"1: server: must be a mapping (got a list)"}},
	"providers is a mapping":   {"providers: {a: 1}", []string{"1: providers: must be a list (got a mapping)"}},
	"item is text":             {"providers: [a]", []string{"1: providers[0]: must be a mapping (got a single value)"}},
	"text is a list":           {"providers: [{id: [a], url: http://h}]", []string{"1: providers[0].id: must be text (got a list)"}},
	"not a mapping at all":     {"- 1", []string{"1: must be a mapping (got a list)"}},
	"bad duration":             {"resilience: {headers_timeout: soon}", []string{`1: resilience.headers_timeout: must be a duration such as 300ms, 30s or 5m (got "soon")`}},
	"duration without a unit":  {"resilience: {idle_timeout: 30}", []string{`1: resilience.idle_timeout: must be a duration such as 300ms, 30s or 5m (got "30")`}},
	"negative duration":        {"resilience: {idle_timeout: -1s}", []string{`1: resilience.idle_timeout: must not be negative (got "-1s")`}},
	"no time at all":           {"resilience: {request_timeout: 0s}", []string{`1: resilience.request_timeout: must be more than zero (got "0s")`}},
	"no time at a provider":    {"providers: [{id: p, url: http://h, headers_timeout: 0s}]", []string{`1: providers[0].headers_timeout: must be more than zero (got "0s")`}},
	"not a boolean":            {"server: {debug: maybe}", []string{`1: server.debug: must be true or false (got "maybe")`}},
	"boolean is a list":        {"server: {debug: []}", []string{"1: server.debug: must be true or false (got a list)"}},
	"size zero":                {"server: {max_body_bytes: 0}", []string{"1: server.max_body_bytes: must be from 1 to 2147483647 (got 0)"}},
	"size with underscores":    {"server: {max_body_bytes: 1_000}", []string{`1: server.max_body_bytes: must be a whole number from 1 to 2147483647 (got "1_000")`}},
	"too long a retention":     {"sessions: {retention_days: 366}", []string{"1: sessions.retention_days: must be from 1 to 365 (got 366)"}},
	"negative price":           {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, price: {input: -1}}]", []string{`2: upstreams[0].price.input: must not be less than 0 (got "-1")`}},
	"price without a figure":   {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, price: {output: 1}}]", []string{`2: upstreams[0].price.input: is missing`}},
	"price is a number":        {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, price: 1}]", []string{`2: upstreams[0].price: must be a mapping (got a single value)`}},
	"dear cached input":        {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, price: {input: 1, cached_input: 1e7}}]", []string{`2: upstreams[0].price.cached_input: must not be more than 1e+06 (got "1e7")`}},
	"completions of a word":    {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, completions: nativ}]", []string{`2: upstreams[0].completions: must be one of chat, native (got "nativ"): did you mean native?`}},
	"completions of a dialect": {"providers: [{id: p, url: http://h, dialect: anthropic}]\nupstreams: [{id: u, provider: p, model: m, completions: native}]", []string{`2: upstreams[0].completions: provider "p" has the dialect anthropic, which has no such route`}},
	"negative cost":            {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, cost: -1}]", []string{`2: upstreams[0].cost: must not be less than 0 (got "-1")`}},
	"endless cost":             {"providers: [{id: p, url: http://h}]\nupstreams: [{id: u, provider: p, model: m, cost: .inf}]", []string{`2: upstreams[0].cost: must be a number (got ".inf")`}},
	"threshold above one":      {"web: {intent: {threshold: 1.5}}", []string{`1: web.intent.threshold: must not be more than 1 (got "1.5")`}},
	"think tags as a list":     {"providers: [{id: p, url: http://h, think_tags: [split]}]", []string{"1: providers[0].think_tags: must be off, split or strip (got a list)"}},
	"the other keys are read":  {"server:\n  port: x\n  locale: y", []string{`2: server.port: must be a whole number from 1 to 65535 (got "x")`, `3: server.locale: must be one of en, ko (got "y")`}},
	"breaker without failures": {"resilience: {breaker: {channel: {failures: 0}}}", []string{"1: resilience.breaker.channel.failures: must be from 1 to 2147483647 (got 0)"}},
	"breaker of both kinds":    {"resilience: {breaker: {channel: {failures: 3, consecutive: 5}}}", []string{"1: resilience.breaker.channel: takes either consecutive, or failures within a window"}},
	"breaker of half a kind":   {"resilience: {breaker: {provider: {failures: 3}}}", []string{"1: resilience.breaker.provider: needs both failures and window"}},

	// what would send requests elsewhere.
	"another word for url":  {"providers:\n- id: openai\n  base_url: http://h\n  key: k", []string{"3: providers[0].base_url: unknown field: did you mean url? Ignored, it would send requests elsewhere"}},
	"other words for keys":  {"providers:\n- {id: openai, api_key: secret-word}\n- {id: groq, apiKey: secret-word}\n- {id: mistral, API-Keys: [secret-word]}", []string{"2: providers[0].api_key: unknown field: did you mean key? Ignored, it would send requests elsewhere", "3: providers[1].apiKey: unknown field: did you mean key? Ignored, it would send requests elsewhere", "4: providers[2].API-Keys: unknown field: did you mean keys? Ignored, it would send requests elsewhere"}},
	"slips of such words":   {"providers:\n- {id: openai, ulr: http://h, dialekt: openai}", []string{"2: providers[0].ulr: unknown field: did you mean url? Ignored, it would send requests elsewhere", "2: providers[0].dialekt: unknown field: did you mean dialect? Ignored, it would send requests elsewhere"}},
	"a slip of a known id":  {"providers: [{id: gorq, keys: [k]}, {id: corp, key: k}]", []string{`1: providers[0].id: "gorq" is no well-known id and has no url: did you mean groq?`, "1: providers[1].url: is missing"}},
	"a file of LiteLLM":     {"model_list:\n- model_name: m\nlitellm_settings: {}", []string{"1: model_list: this is a configuration of LiteLLM: hydrallm import turns it into providers, upstreams and models"}},
	"a slip of a reference": {"providers: [{id: groq, key: k}]\nupstreams: [{id: u, provider: gorq, model: m}]", []string{`2: upstreams[0].provider: there is no provider "gorq": did you mean groq?`}},
	"a slip of a word":      {"log: {level: wran}\nproviders: [{id: groq, dialect: opneai, tier: premum}]", []string{`1: log.level: must be one of debug, info, warn, error (got "wran"): did you mean warn?`, `2: providers[0].dialect: must be one of anthropic, gemini, ollama, openai, openclaw, opencode (got "opneai"): did you mean openai?`, `2: providers[0].tier: must be one of free, standard, premium, experimental, unknown (got "premum"): did you mean premium?`}},
	"a fraction of a whole": {"server: {port: 1.5e0, max_body_bytes: 1.05e1}\nsessions: {max_sessions: 1e400}", []string{`1: server.port: must be a whole number from 1 to 65535 (got "1.5e0")`, `1: server.max_body_bytes: must be a whole number from 1 to 2147483647 (got "1.05e1")`, `2: sessions.max_sessions: must be a whole number from 0 to 2147483647 (got "1e400")`}},
	"a whole beyond bounds": {"server: {port: 7e4}", []string{"1: server.port: must be from 1 to 65535 (got 70000)"}},

	// what can't work, although each part of it is fine.
	"copies of one server":          {"nats: {replicas: 3}", []string{"1: nats.replicas: the embedded server is alone, so that there can't be 3 copies: set nats.url to a cluster, or leave replicas out"}},
	"alias without a name":          {`routing: {aliases: {"": x}}`, []string{`1: routing.aliases."": must not be empty`}},
	"control character, model":      {`models: [{name: "a\tb", upstreams: []}]`, []string{"1: models[0].name: holds the control character U+0009"}},
	"control character, upstream":   {`upstreams: [{id: "\x07", provider: "\x1b[31m", model: "a\nb"}]`, []string{"1: upstreams[0].id: holds the control character U+0007", "1: upstreams[0].provider: holds the control character U+001B", "1: upstreams[0].model: holds the control character U+000A"}},
	"control character, provider":   {`providers: [{id: "a\x7fb", url: http://h, default_models: {free: "a\0b"}}]`, []string{"1: providers[0].id: holds the control character U+007F", "1: providers[0].default_models.free: holds the control character U+0000"}},
	"control character, alias":      {`routing: {aliases: {"a\tb": c, d: "e\tf"}, fast: ["a\tb"], large: "x\x85x"}`, []string{`1: routing.aliases."a\tb": holds the control character U+0009`, "1: routing.aliases.d: holds the control character U+0009", "1: routing.fast[0]: holds the control character U+0009", "1: routing.large: holds the control character U+0085"}},
	"control character, path":       {`log: {file: "a\0b"}`, []string{"1: log.file: holds the control character U+0000"}},
	"control character, references": {`models: [{name: m, upstreams: ["a\tb"]}]`, []string{"1: models[0].upstreams[0]: holds the control character U+0009"}},

	// Words.
	"dialect":      {"providers: [{id: p, url: http://h, dialect: klingon}]", []string{`1: providers[0].dialect: must be one of anthropic, gemini, ollama, openai, openclaw, opencode (got "klingon")`}},
	"tier":         {"providers: [{id: p, url: http://h, tier: gold}]", []string{`1: providers[0].tier: must be one of free, standard, premium, experimental, unknown (got "gold")`}},
	"tier of key":  {"providers: [{id: p, url: http://h, keys: [{value: k, tier: gold}]}]", []string{`1: providers[0].keys[0].tier: must be one of free, standard, premium, experimental, unknown (got "gold")`}},
	"backend":      {"web: {backend: x}", []string{`1: web.backend: must be one of inprocess, mcp (got "x")`}},
	"browser":      {"web: {browser: x}", []string{`1: web.browser: must be one of auto, never, always (got "x")`}},
	"log level":    {"log: {level: loud}", []string{`1: log.level: must be one of debug, info, warn, error (got "loud")`}},
	"log format":   {"log: {format: xml}", []string{`1: log.format: must be one of text, json (got "xml")`}},
	"work storage": {"nats: {work_storage: tape}", []string{`1: nats.work_storage: must be one of memory, file (got "tape")`}},

	// Addresses.
	"no scheme":               {"providers: [{id: p, url: h/v1}]", []string{`1: providers[0].url: must be an address with a host that begins with http:// or https:// (got "h/v1")`}},
	"other scheme":            {"providers: [{id: p, url: ftp://h}]", []string{`1: providers[0].url: must be an address with a host that begins with http:// or https:// (got "ftp://h")`}},
	"no host":                 {`providers: [{id: p, url: "http://:80/v1"}]`, []string{`1: providers[0].url: must be an address with a host that begins with http:// or https:// (got "http://:80/v1")`}},
	"port of a URL":           {`providers: [{id: p, url: "http://h:99999"}]`, []string{`1: providers[0].url: must have a port from 1 to 65535 (got "http://h:99999")`}},
	"credentials in a URL":    {`providers: [{id: p, url: "http://u:secret-word@h"}]`, []string{`1: providers[0].url: must not hold a user name or a password (got "[redacted]@h")`}},
	"key in a bad URL":        {`providers: [{id: p, url: "ftp://h?key=secret-word"}]`, []string{`1: providers[0].url: must be an address with a host that begins with http:// or https:// (got "ftp://h?[redacted]")`}},
	"fragment":                {`providers: [{id: p, url: "http://h/#x"}]`, []string{`1: providers[0].url: must not hold a fragment (got "http://h/#x")`}},
	"origin":                  {"server: {cors_origins: [example]}", []string{`1: server.cors_origins[0]: must be an origin such as https://app.example or http://localhost:* (got "example")`}},
	"origin with a path":      {`server: {cors_origins: ["https://a.example/x"]}`, []string{`1: server.cors_origins[0]: must be an origin such as https://app.example or http://localhost:* (got "https://a.example/x")`}},
	"any origin":              {`server: {cors_origins: ["*"]}`, []string{`1: server.cors_origins: "*" lets every web page use the gateway: it needs server.client_keys`}},
	"host with a port":        {`server: {host: "0.0.0.0:80"}`, []string{`1: server.host: must be an IP address or a host name (got "0.0.0.0:80")`}},
	"no host to bind":         {`server: {host: ""}`, []string{`1: server.host: must be an IP address or a host name (got "")`}},
	"listen without a port":   {"nats: {listen: localhost}", []string{`1: nats.listen: must be host:port (got "localhost")`}},
	"listen for MCP nowhere":  {"web: {mcp_server: {listen: '8765'}}", []string{`1: web.mcp_server.listen: must be host:port (got "8765")`}},
	"listen on a wild port":   {`nats: {listen: "h:0"}`, []string{`1: nats.listen: must be host:port (got "h:0")`}},
	"NATS over HTTP":          {"nats: {url: http://h}", []string{`1: nats.url[0]: must be an address with a host that begins with nats:// or tls:// or ws:// or wss:// (got "http://h")`}},
	"NATS with a password":    {`nats: {url: "nats://u:secret-word@h"}`, []string{`1: nats.url[0]: must not hold a user name or a password (got "[redacted]@h")`}},
	"database":                {"sessions: {database: secret-word}", []string{"1: sessions.database: must be sqlite:<path> or postgres://<user>:<password>@<host>/<database>"}},
	"database without a path": {`sessions: {database: "sqlite:"}`, []string{"1: sessions.database: must be sqlite:<path> or postgres://<user>:<password>@<host>/<database>"}},
	"collector":               {"telemetry: {otlp_endpoint: nowhere}", []string{`1: telemetry.otlp_endpoint: must be an address with a host that begins with http:// or https:// (got "nowhere")`}},
	"lifetime too long":       {"server: {background_lifetime: 7h}", []string{"1: server.background_lifetime: must be at most 6h (got \"7h\")"}},
	"no lifetime":             {"server: {background_lifetime: 0s}", []string{"1: server.background_lifetime: must be more than zero (got \"0s\")"}},
	"no compressor address":   {"sessions: {compressor: http}", []string{"1: sessions.compressor_url: is missing: compressor http needs it"}},
	"unknown compressor":      {"sessions: {compressor: gpt}", []string{`1: sessions.compressor: must be one of extractive, http, llm, off (got "gpt")`}},
	"MCP without an address":  {"web: {backend: mcp}", []string{"1: web.mcp.url: is missing: backend mcp needs it"}}, // C-41
	"address of an engine":    {"web: {engines: {bing: x}}", []string{`1: web.engines.bing: must be an address with a host that begins with http:// or https:// (got "x")`}},
	"allowed host with path":  {"web: {allow_hosts: [http://h]}", []string{`1: web.allow_hosts[0]: must be an IP address or a host name (got "http://h")`}},

	// Keys and headers.
	"key beside keys":            {"providers: [{id: p, url: http://h, key: secret-word, keys: [b]}]", []string{"1: providers[0].keys: has keys beside key: give one of them"}},
	"key over two lines":         {`providers: [{id: p, url: http://h, key: "secret-word\nx"}]`, []string{"1: providers[0].key: holds a control character, so that no HTTP header can carry it"}},
	"key of a wrong type":        {"providers: [{id: p, url: http://h, key: {a: secret-word}}]", []string{"1: providers[0].key: must be text (got a mapping)"}},
	"half a JSON array":          {`providers: [{id: p, url: http://h, keys: '["secret-word"'}]`, []string{"1: providers[0].keys: begins like a JSON array, but is no array of strings"}},
	"header name":                {"providers: [{id: p, url: http://h, headers: {a b: secret-word}}]", []string{`1: providers[0].headers.a b: "a b" is not the name of an HTTP header`}},
	"header of the gateway":      {"providers: [{id: p, url: http://h, headers: {content-length: 1}}]", []string{"1: providers[0].headers.content-length: the gateway sets the header Content-Length itself"}},
	"the same header":            {"providers: [{id: p, url: http://h, headers: {x-a: 1, X-A: 2}}]", []string{"1: providers[0].headers.X-A: the header X-A is given twice"}},
	"session in the wrong place": {"providers: [{id: p, url: http://h, session_header: authorization}]", []string{"1: providers[0].session_header: a session id must not take the place of the header Authorization"}},
	"session header":             {"providers: [{id: p, url: http://h, session_header: 'x y'}]", []string{`1: providers[0].session_header: "x y" is not the name of an HTTP header`}},

	// R-185, C-34: variables.
	"unset variable":               {"providers:\n- {id: p, url: http://h, key: \"${NOT_THERE}\"}", []string{"2: providers[0].key: the environment variable NOT_THERE is not set"}},
	"unset and embedded":           {`providers: [{id: p, url: "http://${NOT_THERE}/v1"}]`, []string{"1: providers[0].url: the environment variable NOT_THERE is not set"}},
	"two unset variables":          {`server: {admin_key: "${NOT_A}${NOT_B}"}`, []string{"1: server.admin_key: the environment variable NOT_A is not set", "1: server.admin_key: the environment variable NOT_B is not set"}},
	"unset in a list":              {`server: {client_keys: ["${NOT_THERE}"]}`, []string{"1: server.client_keys[0]: the environment variable NOT_THERE is not set"}},
	"unset in a header":            {`providers: [{id: p, url: http://h, headers: {X-A: "${NOT_THERE}"}}]`, []string{"1: providers[0].headers.X-A: the environment variable NOT_THERE is not set"}},
	"unset database":               {`sessions: {database: "${NOT_THERE}"}`, []string{"1: sessions.database: the environment variable NOT_THERE is not set"}},
	"unset server":                 {`nats: {url: "${NOT_THERE}", credentials: "${NOT_CRED}"}`, []string{"1: nats.url: the environment variable NOT_THERE is not set", "1: nats.credentials: the environment variable NOT_CRED is not set"}},
	"two identities":               {"nats: {url: 'nats://h', credentials: f, nkey_seed_file: g}", []string{"1: nats.nkey_seed_file: stands beside nats.credentials: a connection has one identity"}},
	"half a certificate":           {"nats: {url: 'nats://h', key: f}", []string{"1: nats.cert: needs nats.key, and the other way round"}},
	"unset search server":          {`web: {mcp: {url: "${NOT_THERE}", token: "${NOT_TOKEN}"}}`, []string{"1: web.mcp.url: the environment variable NOT_THERE is not set", "1: web.mcp.token: the environment variable NOT_TOKEN is not set"}},
	"a brace that stays open":      {`server: {admin_key: "secret-word${X"}`, []string{"1: server.admin_key: has ${ without the name of a variable and a closing brace"}},
	"a default without a name":     {`server: {admin_key: "${:-secret-word}"}`, []string{"1: server.admin_key: has ${ without the name of a variable and a closing brace"}},
	"a default that is a variable": {`server: {admin_key: "${X:-${SECRET}}"}`, []string{"1: server.admin_key: has a variable in the text after :-, which is taken as it is"}},
	"a default without an end":     {`server: {admin_key: "${X:-secret-word"}`, []string{"1: server.admin_key: has ${ without the name of a variable and a closing brace"}},
	"another default":              {`server: {admin_key: "${X-secret-word}"}`, []string{"1: server.admin_key: has ${ without the name of a variable and a closing brace"}},

	// YAML itself.
	"broken YAML":              {"server: {port: 1}\nmodels: [{name: m\nx: y", []string{"2: broken YAML in line 2: did not find expected ',' or '}'"}},
	"broken in the first line": {"server: {port: 1", []string{"1: broken YAML in line 1: did not find expected ',' or '}'"}},
	"bad indentation":          {"server:\n  port: 1\n host: h", []string{"3: broken YAML in line 3: did not find expected key"}},
	"a colon too much":         {"server: {}\nlog: level: info", []string{"2: broken YAML in line 2: mapping values are not allowed in this context"}},
	"a byte that is no text":   {"server: {}\nlog: {file: \"\x01\"}", []string{"2: broken YAML in line 2: control characters are not allowed"}},
	"not UTF-8":                {"server: {}\nlog: {file: \"\xff\"}", []string{"2: broken YAML in line 2: invalid leading UTF-8 octet"}},
	"a key that begins with *": {"providers:\n- {id: p, url: http://h, key: *secret-word}", []string{"2: broken YAML in line 2: there is no anchor of that name (text that begins with * needs quotes)"}},
	"a key that begins with !": {"providers:\n- id: p\n  url: http://h\n  key: !secret-word\n", []string{"4: providers[0].key: has a tag that means nothing here (text that begins with ! needs quotes)"}},
	"two documents":            {"server: {}\n---\nserver: {}", []string{"2: the file holds more than one YAML document"}},
	"the same key twice":       {"models: []\nserver: {}\nmodels: []", []string{"3: models: is given twice (first on line 1)"}},
	"twice inside a patch":     {"models: [{name: m, upstreams: [], patch: {a: {b: 1, b: 2}}}]", []string{"1: models[0].patch.a.b: is given twice (first on line 1)"}},
	"twice in a list":          {"models: [{name: m, upstreams: [], patch: {a: [{b: 1, b: 2}]}}]", []string{"1: models[0].patch.a[0].b: is given twice (first on line 1)"}},
	"twice where nobody reads": {"x: {a: 1, a: 2}", []string{"1: x.a: is given twice (first on line 1)"}},
	"a key that is a list":     {"? [a]\n: 1", []string{"1: has a key that is not a name"}},
	"a merge of text":          {"server: {<<: x}", []string{"1: server: a merge key takes a mapping or a list of mappings (got a single value)"}},
	"an endless merge":         {"server: &a {<<: *a}", []string{"1: server: merge keys go deeper than 100"}},
	"too deep":                 {"x: " + strings.Repeat("[", 200) + strings.Repeat("]", 200), []string{"1: x" + strings.Repeat("[0]", 99) + ": is nested deeper than 100 levels"}},
}

// errors name file, line and key, all at once, and show no secret.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, tc := range errorCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, err := parse(nil, tc.text)
			if tc.want == nil {
				require.NoError(t, err)
				return
			}
			require.Nil(t, c)
			var invalid *config.InvalidError
			require.ErrorAs(t, err, &invalid)
			var got []string
			for _, line := range lines(invalid.Findings) {
				got = append(got, strings.TrimPrefix(line, "config.yaml:"))
			}
			require.Equal(t, tc.want, got)
			require.NotContains(t, err.Error(), "secret-word")
			for _, line := range got {
				require.Contains(t, err.Error(), "config.yaml:"+line)
			}
		})
	}
}

// Each case lists all warnings of its text, without "config.yaml:".
var warningCases = map[string]struct {
	text string
	want []string
}{
	"none":                    {one, nil},
	"unknown upstream":        {strings.Replace(one, "[a1]", "[nowhere, a1]", 1), []string{`4: models[0].upstreams[0]: there is no upstream "nowhere", ignored`}},
	"model without any":       {"models: [{name: m, upstreams: [nowhere]}]", []string{`1: models[0].upstreams[0]: there is no upstream "nowhere", ignored`, `1: models[0]: model "m" has no usable upstream: it is not listed, and requests for it get 404`}},
	"the same upstream twice": {strings.Replace(one, "[a1]", "[a1, a1]", 1), []string{`4: models[0].upstreams[1]: upstream "a1" again, ignored`}},
	"unknown field":           {"log: {colour: blue}", []string{"1: log.colour: unknown field, ignored (known: communication, file, format, level)"}},
	"field without a name":    {one + `"": {}`, []string{`5: "": unknown field, ignored (known: log, models, nats, providers, resilience, routing, server, sessions, telemetry, upstreams, web)`}},
	"unknown field, misspelt": {
		"server:\n  host: localhost\n  prot: 1\n  max_bodybytes: 2\nserverr: {}\nproviders: [{id: groq, key: k, modell: x, default_models: {fre: x}}]",
		[]string{
			"3: server.prot: unknown field, ignored: did you mean port?",
			"4: server.max_bodybytes: unknown field, ignored: did you mean max_body_bytes?",
			"5: serverr: unknown field, ignored: did you mean server?",
			"6: providers[0].modell: unknown field, ignored (known: default_models, defaults, dialect, headers, headers_timeout, id, key, keys, max_concurrency, patch, request_timeout, session_header, think_tags, tier, url)",
			"6: providers[0].default_models.fre: unknown field, ignored: did you mean free?",
		},
	},
	"slips of values": {
		strings.NewReplacer("real-a", "real-a, think_tags: spilt", "[a1]", "[a1, a-1]").Replace(one) + "routing: {fast: [gorq], large: gemni}\nweb: {search: [bing], engines: {bign: http://h}}",
		[]string{
			`3: upstreams[0].think_tags: must be off, split or strip (got "spilt"), off is used: did you mean split?`, `4: models[0].upstreams[1]: there is no upstream "a-1", ignored: did you mean a1?`,
			`5: routing.fast: there is no provider "gorq": did you mean groq?`, `5: routing.large: there is no provider "gemni": did you mean gemini?`,
			"6: web.engines.bign: unknown search engine, ignored: did you mean bing? (known: duckduckgo, bing, openserp, searxng)",
		},
	},
	"other words": {
		"server: {host: localhost, api_keys: [k], master_key: k}\nproviders: [{id: groq, key: k, name: x, timeout: 3s, maxConcurrency: 3}]",
		[]string{
			"1: server.api_keys: unknown field, ignored: did you mean client_keys?", "1: server.master_key: unknown field, ignored: did you mean admin_key?",
			"2: providers[0].name: unknown field, ignored: did you mean id?", "2: providers[0].timeout: unknown field, ignored: did you mean request_timeout?",
			"2: providers[0].maxConcurrency: unknown field, ignored: did you mean max_concurrency?",
		},
	},
	"an alias of itself":  {"server: {host: localhost}\nrouting:\n  aliases:\n    a: a", []string{"4: routing.aliases.a: leads in a circle: a -> a"}},
	"aliases in a circle": {"server: {host: localhost}\nrouting:\n  aliases:\n    a: B\n    b: c\n    c: A\n    d: a", []string{"4: routing.aliases.a: leads in a circle: a -> B -> c -> A", "5: routing.aliases.b: leads in a circle: b -> c -> A -> B", "6: routing.aliases.c: leads in a circle: c -> A -> B -> c", "7: routing.aliases.d: leads in a circle: d -> a -> B -> c -> A"}},
	"aliases that are not used": {
		one + "routing:\n  aliases:\n    m: pa/x\n    auto: m\n    PA: m\n    pa/real: m\n    MLLM/Auto: m",
		[]string{
			"7: routing.aliases.m: is never used: the name is one of models", "8: routing.aliases.auto: is never used: the name leaves the choice to the gateway",
			"9: routing.aliases.PA: is never used: the name means the provider pa", "10: routing.aliases.pa/real: is never used: the name means the provider pa",
			"11: routing.aliases.MLLM/Auto: is never used: the name leaves the choice to the gateway",
		},
	},
	"aliases that lead elsewhere": {
		one + "routing:\n  aliases: {a: b, b: m, c: groq/llama, d: pa/x, e: other/x, f: auto, g: pa}",
		[]string{`6: routing.aliases.a: leads to "b", which is an alias itself: aliases of aliases are not followed`, "6: routing.aliases.c: leads to the provider groq, which is not configured"},
	},
	"address of no compressor":     {"sessions: {compressor: off, compressor_url: 'http://c'}", []string{"1: sessions.compressor_url: has no effect with compressor off"}},
	"an even number of copies":     {"nats: {url: nats://h, replicas: 4}", []string{"1: nats.replicas: 4 copies bear the loss of no more servers than 3 do"}},
	"an odd number of copies":      {"nats: {url: nats://h, replicas: 3}", nil},
	"settings of an absent server": {"nats: {url: nats://h, store_dir: d, listen: 'h:1'}", []string{"1: nats.listen: has no effect beside nats.url", "1: nats.store_dir: has no effect beside nats.url"}},
	"credentials for nothing":      {"nats: {credentials: f}", []string{"1: nats.credentials: has no effect without nats.url"}},
	"nkey for nothing":             {"nats: {nkey_seed_file: f, ca: c}", []string{"1: nats.nkey_seed_file: has no effect without nats.url", "1: nats.ca: has no effect without nats.url"}},
	"rests that are cut short":     {"resilience: {cooldowns: {max: 1h, forbidden: 2h, quota: 30m}}", []string{"1: resilience.cooldowns.forbidden: 2h0m0s is more than cooldowns.max, so that a key rests for 1h0m0s"}},
	"the admin key for everybody":  {"server: {client_keys: [a, secret-word], admin_key: secret-word}", []string{"1: server.admin_key: is a client key too: whoever may ask for answers may use the admin routes"}},
	"a header for two things":      {"providers: [{id: groq, key: k, session_header: x-a, headers: {X-A: b}}]", []string{"1: providers[0].session_header: headers has X-A too: the session id takes its place"}},
	"the gateway as its provider":  {"providers: [{id: groq, key: k, url: 'http://localhost:8100/v1'}, {id: cerebras, key: k, url: 'http://localhost:8101/v1'}]", []string{"1: providers[0].url: leads to this gateway itself, if both are on one machine"}},
	"ids that differ in case":      {"providers: [{id: groq, key: k}, {id: GROQ, url: http://h}]\nrouting: {fast: [GROQ]}", []string{`1: providers[1].id: differs from "groq" only in case, which does not count in the names that clients send`}},
	"an invisible character":       {"providers: [{id: groq, key: k}]\nrouting: {aliases: {a: \"x\\u200b\"}}", []string{"2: routing.aliases.a: holds the character U+200B, which can't be seen"}},
	"unknown section":              {one + "colours: {}", []string{"5: colours: unknown field, ignored (known: log, models, nats, providers, resilience, routing, server, sessions, telemetry, upstreams, web)"}},
	"unknown think mode": {
		strings.Replace(one, "real-a", "real-a, think_tags: sometimes", 1),
		[]string{`3: upstreams[0].think_tags: must be off, split or strip (got "sometimes"), off is used`},
	},
	"stream in a patch": {
		strings.Replace(one, "[a1]", "[a1], patch: {stream: true}", 1),
		[]string{"4: models[0].patch.stream: stream inside a patch is ignored: the client decides"},
	},
	"defaults that have no effect": {
		strings.Replace(one, "[a1]", "[a1], defaults: {stream: true, model: x, messages: [], prompt: y, temperature: 0.1}", 1),
		[]string{
			"4: models[0].defaults.stream: a default for it is ignored: every request has it", "4: models[0].defaults.model: a default for it is ignored: every request has it",
			"4: models[0].defaults.messages: a default for it is ignored: every request has it", "4: models[0].defaults.prompt: a default for it is ignored: every request has it",
		},
	},
	"model and messages in a patch": {strings.Replace(one, "[a1]", "[a1], patch: {model: x, messages: []}", 1), []string{ // C-14
		"4: models[0].patch.model: the patch takes the place of the request's model", "4: models[0].patch.messages: the patch takes the place of the request's messages"}},
	"unused upstream": {strings.Replace(one, "real-a}", "real-a}, {id: spare, provider: pa, model: m}", 1), []string{`3: upstreams[1]: upstream "spare" is in no model`}},
	"unused provider": {"providers: [{id: groq, key: k}, {id: idle, url: http://h}]\nrouting: {priority: [groq]}", []string{`1: providers[1]: provider "idle" has no upstream`}},
	"used by auto":    {"providers: [{id: idle, url: http://h}]", nil},
	"nobody for auto": {one + "routing: {priority: [groq], final_fallback: ''}", []string{"5: routing.priority: none of them is configured: nobody answers auto, and it is not listed"}},
	"not taking part": {one + "routing: {priority: [groq, pa], fast: [groq, pa]}\nserver: {host: localhost}", nil},
	"out of the list": {"providers: [{id: groq, key: k}, {id: cerebras, key: k}]\nrouting: {priority: [groq], fast: [groq, cerebras]}", []string{`2: routing.fast: "cerebras" is not in routing.priority, and so does not take part`}},
	"used by routing": {"providers: [{id: idle, url: http://h}]\nrouting: {fast: [idle]}", nil},
	"used by default": {"providers: [{id: groq, url: http://h}]", nil},
	"https without a key": {
		strings.NewReplacer("http:", "https:", "key-for-a-5d41402abc4b2a76", "").Replace(one),
		[]string{`2: providers[0]: provider "pa" has no key, although its url is https`},
	},
	"https with a header":  {`providers: [{id: groq, headers: {X-Api-Key: k}}]`, nil},
	"keys in a pool":       {`providers: [{id: groq, keys: ["", secret-word, " secret-word\n"]}]`, []string{"1: providers[0].keys[0]: empty, ignored", "1: providers[0].keys[2]: the same again, ignored"}},
	"keys of clients":      {`server: {client_keys: ["", secret-word, secret-word]}`, []string{"1: server.client_keys[0]: empty, ignored", "1: server.client_keys[2]: the same again, ignored"}},
	"time-outs do not fit": {"resilience: {headers_timeout: 20s, stream_gate_timeout: 20s, request_timeout: 40s}", []string{"1: resilience.request_timeout: request_timeout 40s is not more than headers_timeout 20s and stream_gate_timeout 20s together, so that it may end a call first"}},
	"nor at a provider":    {"providers: [{id: groq, key: k, request_timeout: 270s}]", []string{"1: providers[0].request_timeout: request_timeout 4m30s is not more than headers_timeout 4m0s and stream_gate_timeout 30s together, so that it may end a call first"}},
	"shared limit": { // C-13
		"providers: [{id: p, url: http://h, max_concurrency: 1}]\nupstreams: [{id: a, provider: p, model: m}, {id: b, provider: p, model: m}, {id: c, provider: p, model: n}]\nmodels: [{name: m, upstreams: [a, b, c]}]",
		[]string{"1: providers[0].max_concurrency: the limit of 1 holds for each of 2 models, not for all of them together"},
	},
	"two limits": {
		"providers: [{id: p, url: http://h, max_concurrency: 1}]\nupstreams: [{id: a, provider: p, model: m}, {id: b, provider: p, model: m, max_concurrency: 0}, {id: c, provider: p, model: n, max_concurrency: 1}]\nmodels: [{name: m, upstreams: [a, b, c]}]",
		[]string{"2: upstreams[1].max_concurrency: the calls of model \"m\" are counted together under all its names, but upstream a has a limit of 1, and upstream b of none"},
	},
	"two limits, one of a direct name": {
		"providers: [{id: groq, key: k, max_concurrency: 1}]\nupstreams: [{id: a, provider: groq, model: m, max_concurrency: 2}]\nmodels: [{name: m, upstreams: [a]}]",
		[]string{"2: upstreams[0].max_concurrency: the calls of model \"m\" are counted together under all its names, but provider groq has a limit of 1, and upstream a of 2"},
	},
	"long chain": {
		"providers: [{id: p, url: http://h}]\nupstreams: [{id: a, provider: p, model: m}, {id: b, provider: p, model: m}]\n" +
			"models: [{name: m, upstreams: [a, b]}]\nresilience: {max_hops: 1}",
		[]string{`3: models[0].upstreams: model "m" has 2 upstreams, but a request calls at most resilience.max_hops = 1 of them`},
	},
	"routing to nowhere":    {"routing: {priority: [groq, nope], fast: [nope2], large: nope3, final_fallback: nope4}", []string{`1: routing.priority: there is no provider "nope"`, `1: routing.fast: there is no provider "nope2"`, `1: routing.large: there is no provider "nope3"`, `1: routing.final_fallback: there is no provider "nope4"`}},
	"repeated in a list":    {`routing: {fast: [groq, "", groq]}`, []string{"1: routing.fast[1]: empty, ignored", "1: routing.fast[2]: the same again, ignored"}},
	"search engines":        {"web: {search: [bing, altavista, searxng], engines: {lycos: x}}", []string{"1: web.engines.lycos: unknown search engine, ignored (known: duckduckgo, bing, openserp, searxng)", `1: web.search: there is no search engine "altavista", ignored (known: duckduckgo, bing, openserp, searxng)`, "1: web.search: the search engine searxng has no address, ignored"}}, // R-258
	"a variable in a name":  {strings.Replace(one, "real-a", `"${MODEL}"`, 1), []string{"3: upstreams[0].model: variables are not replaced here: they are in addresses, paths, keys and headers"}},
	"open and in debug":     {"log: {}\nserver: {debug: true}", []string{"2: server.client_keys: there are no client keys although host 0.0.0.0 is not only this machine: whoever can connect can use the providers", "2: server.debug: debug without an admin key on host 0.0.0.0: whoever can connect can use the admin routes"}}, // R-382
	"open to this machine":  {"log: {}\nserver: {host: localhost, debug: true}", nil},
	"closed by client keys": {"log: {}\nserver: {client_keys: [secret-word]}", nil},
}

// what is odd but works is a warning.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for name, tc := range warningCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, warnings, err := parse(nil, tc.text)
			require.NoError(t, err)
			var got []string
			for _, line := range lines(warnings) {
				got = append(got, strings.TrimPrefix(line, "config.yaml:"))
			}
			require.Equal(t, tc.want, got)
			require.NotContains(t, strings.Join(got, "\n"), "secret-word")
		})
	}
}

// What aliases make of a small file is bounded in time and memory.
func TestAliasBombs(t *testing.T) {
	t.Parallel()
	var bomb strings.Builder
	bomb.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&bomb, "a%d: &a%d [%s*a%d]\n", i, i, strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 9), i-1)
	}
	long := strings.Repeat("y", 100_000)
	var merges strings.Builder
	merges.WriteString("m0: &m0 {x: 1}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&merges, "m%d: &m%d {<<: [*m%d, *m%d]}\n", i, i, i-1, i-1)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"lists in a patch":    {bomb.String() + "models: [{name: m, upstreams: [], patch: {p: *a8}}]\n", "models[0].patch: must not be larger than 1048576 bytes"},
		"long text":           {"x: &x " + long + "\nmodels: [{name: m, upstreams: [], patch: {p: [" + strings.Repeat("*x, ", 1000) + "]}}]\n", "models[0].patch: must not be larger"},
		"a patch in itself":   {"models: [{name: m, upstreams: [], patch: &p {x: *p}}]", "is nested deeper than 100 levels"},
		"a list in itself":    {"models: [{name: m, upstreams: [], patch: {x: &p [*p]}}]", "is nested deeper than 100 levels"},
		"merges":              {merges.String() + "server: *m39\n", "aliases and merge keys make the file hold more than 500000 values"},
		"providers":           {"k: &k [" + strings.Repeat("k, ", 2000) + "]\nproviders: [" + strings.Repeat("{id: p, url: http://h, keys: *k}, ", 1000) + "]", "aliases and merge keys make the file hold more"},
		"thousands of errors": {"models: [" + strings.Repeat("1, ", 5000) + "]", "and 4800 more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := parse(nil, tc.text)
			require.ErrorContains(t, err, tc.want)
			require.Less(t, len(err.Error()), 100_000)
		})
	}
}
