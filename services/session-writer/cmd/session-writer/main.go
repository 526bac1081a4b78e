// The session-writer owns the database.
package main

import (
	"os"

	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "session-writer", HealthAddr: ":9104", Build: sessionwriter.Build}))
}
