// Package gateway is the whole pipeline in one process: an embedded NATS server and the five services, each with a connection of its own, as
// they are deployed one by one.
package gateway

import (
	"context"
	"log/slog"
	"slices"

	"hydrallm/services/hydrallm/internal/broker"
	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/telemetry"
)

// Run serves until ctx ends. What the caller adds is started when the gateway takes requests. Everything that started is stopped when Run
// returns, the front first.
func Run(ctx context.Context, settings process.Settings, log *slog.Logger, added ...lifecycle.Named) error {
	return run(ctx, settings, log, ingress.Build, added)
}

// RunDemo is Run for a demo, whose upstreams can be steered in the web interface.
func RunDemo(ctx context.Context, settings process.Settings, log *slog.Logger, demo ingress.Demo, added ...lifecycle.Named) error {
	return run(ctx, settings, log, ingress.BuildDemo(demo), added)
}

func run(ctx context.Context, settings process.Settings, log *slog.Logger, front process.Build, added []lifecycle.Named) error {
	fail := make(chan error, 1)
	list, units := services(settings, log, front, process.Fail(fail))
	notify := process.Notifier{Log: log}
	defer process.OnHangup(ctx, units, notify)()
	parts := append(append(list, added...), lifecycle.Named{Name: "systemd", Service: notify})
	return lifecycle.Run(ctx, log, settings.Server.StopLimit(), fail, parts...)
}

// services gives the parts of the gateway in the order in which they start.
func services(settings process.Settings, log *slog.Logger, front process.Build, onLost func(error)) (list []lifecycle.Named, units []*process.Unit) {
	var embedded bus.InProcess
	if settings.NATS.URL == "" {
		server := broker.New(broker.Config{StoreDir: settings.NATS.StoreDir, Listen: settings.NATS.Listen}, log)
		embedded = server
		list = append(list, lifecycle.Named{Name: "NATS", Service: server})
	}
	parts := process.Parts{Config: settings.Config, Again: settings.Again, Version: process.Version(), Log: log, Metrics: telemetry.NewRegistry(process.Version()), Sockets: settings.Sockets}
	local := localTraffic(settings)
	for _, s := range append(slices.Clone(pipeline), stage{"ingress", front}) {
		connect := settings.Connection(s.name)
		connect.InProcess, connect.Local, connect.Logger, connect.OnLost = embedded, local, log, onLost
		parts.ID = process.NewID(s.name)
		unit := process.NewUnit(connect, parts, s.build)
		units = append(units, unit)
		list = append(list, lifecycle.Named{Name: s.name, Service: unit})
	}
	return list, units
}

// localTraffic is for what need not go through the server. It is nil, and everything does, when another process may take requests, or they outlive
// this one.
func localTraffic(settings process.Settings) *bus.Local {
	if settings.NATS.URL != "" || settings.NATS.Listen != "" || settings.NATS.WorkOnDisk {
		return nil
	}
	return bus.NewLocal()
}
