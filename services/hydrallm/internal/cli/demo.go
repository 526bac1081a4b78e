package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"hydrallm/services/hydrallm/internal/demo"
	"hydrallm/services/hydrallm/internal/gateway"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

type demoCmd struct {
	Port port `help:"Port to listen on; without it 8100, or a free one when that is taken." placeholder:"PORT"`
}

const demoPort = 8100

// Run serves with scripted providers until the process is told to stop.
func (c demoCmd) Run(a *App) (err error) {
	dir, err := os.MkdirTemp("", "hydrallm-demo-")
	if err != nil {
		return fmt.Errorf("creating a directory for the demo: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	around, err := demo.Start(a.Ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(a.Ctx), mockDrain)
		defer cancel()
		err = errors.Join(err, around.Stop(ctx))
	}()
	if err != nil {
		return err
	}
	listen := int(c.Port)
	if listen == 0 {
		listen = choosePort(a.Ctx)
	}
	settings, err := around.Settings(dir, listen)
	if err != nil {
		return err
	}
	return process.Observed(a.Ctx, settings, "hydrallm-demo", a.Out, func(log *slog.Logger) error {
		settings.Report(a.Ctx, log)
		return gateway.RunDemo(a.Ctx, settings, log, around, lifecycle.Named{
			Name: "the announcement", Service: announcement(func() error { return demo.Announce(a.Out, settings) }),
		})
	})
}

// choosePort gives the usual port, or a free one when that is taken.
func choosePort(ctx context.Context) int {
	var lc net.ListenConfig
	for _, p := range []int{demoPort, 0} {
		ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(p)))
		if err != nil {
			continue
		}
		defer ln.Close() //nolint:errcheck // only its number was wanted
		if addr, ok := ln.Addr().(*net.TCPAddr); ok {
			return addr.Port
		}
	}
	return demoPort
}
