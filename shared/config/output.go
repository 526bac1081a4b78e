package config

import "strings"

// Log is the log output.
type Log struct {
	Level  string // debug | info | warn | error
	Format string // text | json
	File   string // also written there, with rotation; "" = only standard output
}

func (doc *document) log(n node) {
	l := &doc.Log
	n.fields(map[string]func(node){"level": logLevel(&l.Level), "format": oneOf(&l.Format, "text", "json"), "file": expanded(&l.File)})
}

// logLevel reads a level. "warning" is a common spelling of one.
func logLevel(p *string) func(node) {
	return func(n node) {
		if strings.EqualFold(n.Value, "warning") {
			*p = "warn"
			return
		}
		oneOf(p, "debug", "info", "warn", "error")(n)
	}
}

// Telemetry is the trace output.
type Telemetry struct {
	OTLPEndpoint string // "" = no traces are sent
	ServiceName  string
}

func (doc *document) telemetry(n node) {
	t := &doc.Telemetry
	n.fields(map[string]func(node){"otlp_endpoint": web(&t.OTLPEndpoint), "service_name": name(&t.ServiceName)})
}
