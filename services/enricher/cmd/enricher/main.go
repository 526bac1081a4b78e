// The enricher stands between decision and execution of a request.
package main

import (
	"os"

	"hydrallm/services/enricher"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "enricher", HealthAddr: ":9102", Build: enricher.Build}))
}
