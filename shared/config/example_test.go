package config_test

import (
	"fmt"

	"hydrallm/shared/config"
)

// A configuration is read whole: variables are replaced, presets and defaults filled in, and nothing is left to inherit.
func ExampleEnvironment_Parse() {
	env := config.Environment{Dir: "/etc/hydrallm", Lookup: func(name string) (string, bool) {
		return "gsk_one,gsk_two", name == "GROQ_KEYS"
	}}
	c, warnings, err := env.Parse("/etc/hydrallm/config.yaml", []byte(`
server: {host: 127.0.0.1}
providers:
  - {id: groq, keys: "${GROQ_KEYS}", max_concurrency: 4}
upstreams:
  - {id: small, provider: groq, model: llama-3.1-8b}
models:
  - {name: my-model, upstreams: [small]}
routing: {priority: [groq], fast: [groq], large: groq, final_fallback: "", aliases: {}}
`))
	fmt.Println(len(warnings), err)
	p := c.Providers[0]
	fmt.Println(p.URL, len(p.Keys), p.Keys[0].Value)
	fmt.Println(c.Upstreams[0].Limit, c.Resilience.HeadersTimeout)
	// Output:
	// 0 <nil>
	// https://api.groq.com/openai/v1 2 [redacted]
	// 4 4m0s
}

// Everything that is wrong is told at once, with line and key.
func ExampleFinding() {
	env := config.Environment{Dir: "/etc/hydrallm", Lookup: func(string) (string, bool) { return "", false }}
	_, warnings, err := env.Parse("config.yaml", []byte("server: {port: 0}\nupstreams: [{id: a, provider: nowhere, model: m}]\ncolour: red\n"))
	fmt.Println(err)
	for _, w := range warnings {
		fmt.Println("warning:", w.Line, w.Path)
	}
	// Output:
	// the configuration is not valid:
	//   config.yaml:1: server.port: must be from 1 to 65535 (got 0)
	//   config.yaml:2: upstreams[0].provider: there is no provider "nowhere"
	// warning: 1 server.client_keys
	// warning: 2 upstreams[0]
	// warning: 3 colour
}

// A key is named without giving it away.
func ExampleMask() {
	fmt.Println(config.Mask("gsk_0123456789abcdef"), config.Mask("short-key1"), config.Mask("abc"))
	// Output: gsk_0123... shor... ...
}
