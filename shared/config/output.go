package config

import "strings"

// Log is the log output.
type Log struct {
	Level  string // debug | info | warn | error
	Format string // text | json
	File   string // also written there, with rotation; "" = only standard output

	Communication bool // what goes to providers and comes back is kept for the admin, without texts
}

func (l *Log) settings() []setting {
	level := oneOf(&l.Level, "debug", "info", "warn", "error")
	read := level.read
	level.read = func(n node) {
		if strings.EqualFold(n.Value, "warning") { // a common spelling
			n.Node = scalar("warn", n.Line)
		}
		read(n)
	}
	return []setting{
		key("level", level, "info", "what is logged; `server.debug` makes it `debug`").env("LOG_LEVEL").live(),
		key("format", oneOf(&l.Format, "text", "json"), "text", "form of the lines"),
		key("communication", boolean(&l.Communication), "false", "each dispatcher keeps its last 500 calls for `/v1/admin/comm-logs`: models, counts and ends, "+
			"no texts").env("DEBUG_COMM_LOG").live(),
		key("file", path(&l.File), "", "also write there, in up to six files of 10 MB; empty for standard output only"),
	}
}

// Telemetry is the trace output.
type Telemetry struct {
	OTLPEndpoint string // "" = no traces are sent
	ServiceName  string
}

func (t *Telemetry) settings() []setting {
	return []setting{
		key("otlp_endpoint", web(&t.OTLPEndpoint), "", "address of a collector that takes traces as OTLP over HTTP, such as `http://otel:4318`; `/v1/traces` is added. Empty for none"),
		key("service_name", name(&t.ServiceName), "hydrallm", "name in the traces"),
	}
}
