// The dispatcher calls upstreams.
package main

import (
	"os"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "dispatcher", HealthAddr: ":9103", Build: build}))
}

func build(p process.Parts) (lifecycle.Service, error) {
	return dispatcher.New(dispatcher.Config{ID: p.ID, Gateway: p.Config, Settings: p.Settings, Version: p.Version, Environ: os.Environ()}, p.Bus, p.Log, p.Metrics)
}
