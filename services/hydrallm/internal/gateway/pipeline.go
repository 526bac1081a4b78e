package gateway

import (
	"hydrallm/services/analyzer"
	"hydrallm/services/dispatcher"
	"hydrallm/services/enricher"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

// pipeline lists the services from the back to the front, so that whatever a service sends has a receiver.
var pipeline = []struct {
	name  string
	build process.Build
}{
	{"session-writer", buildSessionWriter},
	{"dispatcher", buildDispatcher},
	{"enricher", buildEnricher},
	{"analyzer", buildAnalyzer},
}

func buildSessionWriter(p process.Parts) (lifecycle.Service, error) {
	return sessionwriter.New(sessionwriter.Config{Database: p.Config.Sessions.Database.Reveal()}, p.Bus, p.Log, p.Metrics)
}

func buildDispatcher(p process.Parts) (lifecycle.Service, error) {
	return dispatcher.New(dispatcher.Config{ID: p.ID, Gateway: p.Config, Version: p.Version}, p.Bus, p.Log, p.Metrics)
}

func buildEnricher(p process.Parts) (lifecycle.Service, error) {
	return enricher.New(p.Bus, p.Log, p.Metrics)
}

func buildAnalyzer(p process.Parts) (lifecycle.Service, error) {
	return analyzer.New(analyzer.Config{Gateway: p.Config}, p.Bus, p.Log, p.Metrics)
}

