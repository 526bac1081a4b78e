package lifecycle_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/shared/lifecycle"
)

// clerk is a service that says what happens to it.
type clerk string

func (c clerk) Start(context.Context) error { fmt.Println("start", c); return nil }
func (c clerk) Stop(context.Context) error  { fmt.Println("stop", c); return nil }

// Services start in order and stop in the reverse order, so that each can use those before it for as long as it runs.
func ExampleRun() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // as a signal would
	err := lifecycle.Run(ctx, slog.New(slog.DiscardHandler), time.Second, nil,
		lifecycle.Named{Name: "the bus", Service: clerk("the bus")},
		lifecycle.Named{Name: "the analyzer", Service: clerk("the analyzer")})
	fmt.Println(err)
	// Output:
	// start the bus
	// start the analyzer
	// stop the analyzer
	// stop the bus
	// <nil>
}
