// The session-writer owns the database.
package main

import (
	"os"

	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "session-writer", HealthAddr: ":9104", Build: build}))
}

func build(p process.Parts) (lifecycle.Service, error) {
	return sessionwriter.New(sessionwriter.Config{Database: p.Config.Sessions.Database.Reveal()}, p.Bus, p.Log, p.Metrics)
}
