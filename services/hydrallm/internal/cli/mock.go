package cli

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/lifecycle"
)

type mockCmd struct {
	Listen string        `default:"127.0.0.1:9100" help:"Address to listen on (${default})."`
	Delay  time.Duration `default:"30ms" help:"Pause before each word and each piece of a tool call (${default})."`
}

// mockDrain is how long answers of the mock may go on after it was told to stop.
const mockDrain = 3 * time.Second

// Run serves until the process is told to stop.
func (c mockCmd) Run(a *App) error {
	server := mockllm.New(mockllm.Config{Listen: c.Listen, Delay: c.Delay})
	return lifecycle.Run(a.Ctx, slog.New(slog.DiscardHandler), mockDrain, nil,
		lifecycle.Named{Name: "the mock upstream", Service: server},
		lifecycle.Named{Name: "the announcement", Service: announcement(func() error {
			_, err := fmt.Fprintf(a.Out, "The mock upstream listens on http://%s/v1 with the models %q, %q and %q.\n",
				server.Addr(), mockllm.Model, mockllm.Embedding, mockllm.Unavailable)
			return err
		})})
}

// announcement tells the user something once everything before it has started.
type announcement func() error

// Start tells it.
func (f announcement) Start(context.Context) error { return f() }

// Stop does nothing.
func (announcement) Stop(context.Context) error { return nil }
