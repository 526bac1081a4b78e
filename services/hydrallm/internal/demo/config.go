package demo

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

// The models of the demo: alpha answers while it can, beta when it can't.
var configuration = template.Must(template.New("demo").Parse(`# Configuration of "hydrallm demo".
server: {host: 127.0.0.1, port: {{.Port}}, admin_key: demo}

providers:
  - id: alpha
    url: "http://{{index .Providers 0}}/v1"
    keys: [alpha-demo-key-1, alpha-demo-key-2, alpha-demo-key-3]
    default_models: {free: mock}
    headers_timeout: 4s
  - id: beta
    url: "http://{{index .Providers 1}}/v1"
    keys: [beta-demo-key-1, beta-demo-key-2]
    default_models: {free: mock}
  - {id: spare, url: "http://{{index .Providers 1}}/v1", key: spare-demo-key}

upstreams:
  - {id: alpha-mock, provider: alpha, model: mock}
  - {id: beta-mock, provider: beta, model: mock}
  - {id: fails, provider: spare, model: unavailable}
  - {id: vectors, provider: spare, model: mock-embedding}

models:
  - {name: demo, upstreams: [alpha-mock, beta-mock], pipeline: true}
  - {name: demo-failover, upstreams: [fails, beta-mock]}
  - {name: demo-embedding, upstreams: [vectors]}

# What failed is tried again soon, for who watches.
resilience: {breaker: {channel: {window: 3s, open_for: 3s}}, cooldowns: {other: 3s}}
routing: {priority: [alpha, beta], large: beta, final_fallback: "", aliases: {}}
web: {browser: never, search: [searxng], searxng_url: "http://{{.Search}}", allow_hosts: ["{{.WebHost}}"], cache_ttl: 0s, intent: {embedding_url: "http://{{.Search}}"}}
sessions: {database: "sqlite:{{.Dir}}/hydrallm.db"}
nats: {store_dir: "{{.Dir}}/nats"}
`))

// Settings writes the configuration of the demo into a directory, where its data will be too, and reads it.
func (d *Demo) Settings(dir string, port int) (process.Settings, error) {
	values := struct {
		Port                 int
		Providers            []string
		Search, WebHost, Dir string
	}{Port: port, Search: d.web.search.addr.String(), WebHost: d.web.page.addr.IP.String(), Dir: filepath.ToSlash(dir)}
	for _, p := range d.providers {
		values.Providers = append(values.Providers, p.address().String())
	}
	var text strings.Builder
	if err := configuration.Execute(&text, values); err != nil {
		return process.Settings{}, fmt.Errorf("writing the configuration of the demo: %w", err)
	}
	path := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return process.Settings{}, fmt.Errorf("writing the configuration of the demo: %w", err)
	}
	// The environment of the user must not change what the demo does.
	env := config.Environment{Dir: dir, Lookup: func(string) (string, bool) { return "", false }}
	return process.LoadFrom(env, process.Overrides{})
}

const announcement = `
HydraLLM runs with two scripted providers, alpha and beta. Its configuration is %[1]s. Open

  http://%[2]s/ui/#/demo      (the admin key is "demo")

to break one of them and see what happens, or try:

  curl -N http://%[2]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model": "demo", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'

  curl http://%[2]s/v1/admin/demo -H 'X-Admin-Key: demo' -H 'Content-Type: application/json' -d '{"upstream": "alpha", "state": "broken"}'

  curl -si http://%[2]s/v1/chat/completions -H 'Content-Type: application/json' \
    -d '{"model": "demo", "has_search": true, "messages": [{"role": "user", "content": "What lamp has the lighthouse of Demo Bay?\nquote"}]}'

The models do what the message says: "call a tool", "think", "fail 429"; docs/mock.md has the list. Other models: "auto", "demo-failover", whose first upstream
always fails, and "demo-embedding". Ctrl-C ends the demo and removes its data.

`

// Announce tells what to do with a demo that runs.
func Announce(w io.Writer, s process.Settings) error {
	_, err := fmt.Fprintf(w, announcement, s.Source, s.Server.Bind())
	return err
}
