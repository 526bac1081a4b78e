package gateway

import (
	"os"

	"hydrallm/services/analyzer"
	"hydrallm/services/dispatcher"
	"hydrallm/services/enricher"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

// stage is a service of the pipeline.
type stage struct {
	name  string
	build process.Build
}

// pipeline lists the services from the back to the front, so that whatever a service sends has a receiver. The front itself, which is the ingress, comes
// behind them.
var pipeline = []stage{
	{"session-writer", sessionwriter.Build},
	{"dispatcher", buildDispatcher},
	{"enricher", enricher.Build},
	{"analyzer", analyzer.Build},
}

func buildDispatcher(p process.Parts) (lifecycle.Service, error) {
	alone := p.Config.NATS.URL == "" && p.Config.NATS.Listen == "" // nobody else can reach the embedded server
	cfg := dispatcher.Config{ID: p.ID, Gateway: p.Config, Settings: p.Settings, Version: p.Version, Alone: alone, Environ: os.Environ()}
	return dispatcher.New(cfg, p.Bus, p.Log, p.Metrics)
}
