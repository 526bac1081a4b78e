// The enricher stands between decision and execution of a request. As `enricher mcp` it offers its search to agents instead.
package main

import (
	"fmt"
	"os"

	"hydrallm/services/enricher"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

func main() {
	switch args := os.Args[1:]; {
	case len(args) == 0 || args[0] == "healthcheck":
		os.Exit(process.Main(process.Service{Name: "enricher", HealthAddr: ":9102", Build: enricher.Build}))
	case len(args) == 1 && args[0] == "mcp":
		os.Exit(mcp())
	default:
		fmt.Fprintln(os.Stderr, "usage: enricher [mcp | healthcheck PORT [PATH]]")
		os.Exit(2)
	}
}

func mcp() int {
	ctx, stop := lifecycle.Signals()
	defer stop()
	env, err := config.Process()
	if err == nil {
		err = enricher.RunMCP(ctx, env, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "enricher:", err)
		return 1
	}
	return 0
}
