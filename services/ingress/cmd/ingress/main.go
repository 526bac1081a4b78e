// The ingress is what clients talk to.
package main

import (
	"os"

	"hydrallm/services/ingress"
	"hydrallm/shared/process"
)

func main() {
	os.Exit(process.Main(process.Service{Name: "ingress", HealthAddr: ":9100", Build: ingress.Build}))
}
