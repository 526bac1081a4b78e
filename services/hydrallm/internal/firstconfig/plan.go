package firstconfig

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"

	"hydrallm/shared/config"
)

// Plan is what a configuration shall hold.
type Plan struct {
	Port       int
	Providers  []Found
	Alias      string // a name for the default model, or ""
	Default    string // the model that it stands for
	AdminKey   bool   // a new admin key goes into .env
	ClientKeys bool   // a new client key does
}

// Names of the variables that keys of the gateway itself are in.
const (
	AdminVariable  = "ADMIN_API_KEY"
	ClientVariable = "CLIENT_API_KEYS"
)

// DefaultPort is that of a gateway with a configuration.
const DefaultPort = 8100

// NewPlan is a plan that takes everything, for a gateway that this machine alone reaches.
func NewPlan(found []Found) Plan {
	return Plan{Port: DefaultPort, Providers: found, Alias: "chat", Default: "auto", AdminKey: true}
}

// Models gives the names of the models that local servers have, each once.
func (p *Plan) Models() []string {
	var all []string
	for _, f := range p.Providers {
		for _, m := range f.Models {
			if !slices.Contains(all, m) {
				all = append(all, m)
			}
		}
	}
	return all
}

type entry struct{ ID, Provider, Model string }

// upstreams are those of the models of local servers.
func (p *Plan) upstreams() (all []entry) {
	for _, f := range p.Providers {
		for _, m := range f.Models {
			all = append(all, entry{ID: fmt.Sprintf("%s-%d", f.ID, len(all)+1), Provider: f.ID, Model: m})
		}
	}
	return all
}

var page = template.Must(template.New("config").Funcs(template.FuncMap{"quote": quote, "names": func(v []string) string { return strings.Join(v, ", ") }}).Parse(
	`# Written by hydrallm init. docs/configuration.md describes every key; hydrallm check says whether the file is sound.
# ${NAME} is an environment variable; a file .env in the working directory holds some, too.

server:
  host: 127.0.0.1               # this machine alone. For others: 0.0.0.0, with client_keys
  port: {{.Plan.Port}}
{{- if .Plan.ClientKeys}}
  client_keys: "${{"{"}}{{.Client}}}" # what clients send as "Authorization: Bearer <key>"; commas separate several
{{- end}}
{{- if .Plan.AdminKey}}
  admin_key: "${{"{"}}{{.Admin}}}"   # opens /ui and /v1/admin
{{- end}}

# Where models are. Well-known ids bring their address along.
providers:
{{- range .Plan.Providers}}
  - id: {{.ID}}
{{- if eq (len .Variables) 1}}
    keys: "${{"{"}}{{index .Variables 0}}}"
{{- else if .Variables}}
    keys:
{{- range .Variables}}
      - "${{"{"}}{{.}}}"
{{- end}}
{{- end}}
{{- if .URLFrom}}
    url: "${{"{"}}{{.URLFrom}}}"
{{- end}}
{{- else}}
  - id: ollama                  # nothing was found: this is where Ollama would be
  # - id: groq
  #   keys: "${GROQ_API_KEY}"
{{- end}}
{{- with .Upstreams}}

# Models that servers of this machine had when this was written. Those of providers are found while the gateway runs.
upstreams:
{{- range .}}
  - {id: {{.ID}}, provider: {{.Provider}}, model: {{quote .Model}}}
{{- end}}

# The names that clients use. The order of the upstreams is their priority.
models:
{{- range $.Models}}
  - {name: {{quote .Name}}, upstreams: [{{names .Upstreams}}]}
{{- end}}
{{- end}}

# Clients that name no model, or "auto", get one that the gateway chooses.
routing:
  final_fallback: "{{.Fallback}}"{{if .Fallback}}        # asked last{{end}}
{{- if .Plan.Alias}}
  aliases:
    {{quote .Plan.Alias}}: {{quote .Plan.Default}}
{{- else}}
  aliases: {}                   # such as gpt-4o: gemini-2.5-pro
{{- end}}
`))

// quote writes a text so that YAML takes it for nothing else.
func quote(s string) (string, error) {
	text, err := yaml.Marshal(&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle})
	return strings.TrimSuffix(string(text), "\n"), err
}

type named struct {
	Name      string
	Upstreams []string
}

// Config writes the configuration and has it checked, with variables as they are and new for those that .env will have.
func (p *Plan) Config(lookup func(string) (string, bool)) (text []byte, warnings []config.Finding, err error) {
	upstreams := p.upstreams()
	var models []named
	for _, name := range p.Models() {
		m := named{Name: name}
		for _, u := range upstreams {
			if u.Model == name {
				m.Upstreams = append(m.Upstreams, u.ID)
			}
		}
		models = append(models, m)
	}
	fallback := ""
	if len(p.Providers) == 0 || slices.ContainsFunc(p.Providers, func(f Found) bool { return f.ID == "ollama" }) {
		fallback = "ollama"
	}
	var b strings.Builder
	err = page.Execute(&b, map[string]any{
		"Plan": p, "Upstreams": upstreams, "Models": models, "Fallback": fallback, "Admin": AdminVariable, "Client": ClientVariable,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("writing the configuration: %w", err)
	}
	env := config.Environment{Dir: ".", Lookup: func(name string) (string, bool) {
		if v, ok := lookup(name); ok || name != AdminVariable && name != ClientVariable {
			return v, ok
		}
		return "stand-in-" + strings.ToLower(name), p.AdminKey && name == AdminVariable || p.ClientKeys && name == ClientVariable
	}}
	_, warnings, err = env.Parse("config.yaml", []byte(b.String()))
	return []byte(b.String()), warnings, err
}

// NewKey makes a key that nobody can guess.
func NewKey(prefix string) string {
	const size = 32
	random := make([]byte, size)
	_, _ = rand.Read(random) // never fails, as it is documented
	return prefix + hex.EncodeToString(random)
}
