// The analyzer decides which model serves a request.
package main

import (
	"os"

	"hydrallm/services/analyzer"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "analyzer", HealthAddr: ":9101", Build: build}))
}

func build(p process.Parts) (lifecycle.Service, error) {
	return analyzer.New(analyzer.Config{Gateway: p.Config}, p.Bus, p.Log, p.Metrics)
}
