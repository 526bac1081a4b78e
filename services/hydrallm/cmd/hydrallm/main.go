// The hydrallm binary is the whole gateway in one process.
package main

import (
	"fmt"
	"os"

	"hydrallm/services/hydrallm/internal/cli"
	"hydrallm/shared/config"
	"hydrallm/shared/lifecycle"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := lifecycle.Signals()
	defer stop()
	env, err := config.Process()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hydrallm:", err)
		return 1
	}
	app := cli.App{Ctx: ctx, Env: env, In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return app.Run(os.Args[1:])
}
