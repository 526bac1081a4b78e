// The enricher stands between decision and execution of a request.
package main

import (
	"os"

	"hydrallm/services/enricher"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "enricher", HealthAddr: ":9102", Build: build}))
}

func build(p process.Parts) (lifecycle.Service, error) {
	return enricher.New(p.Bus, p.Log, p.Metrics)
}
