// The analyzer decides which model serves a request.
package main

import (
	"os"

	"hydrallm/services/analyzer"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "analyzer", HealthAddr: ":9101", Build: analyzer.Build}))
}
