package telemetry_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"hydrallm/shared/telemetry"
)

// An event is one line that people and scripts can read, with the id of the request that it is about.
func ExampleEvent() {
	var out strings.Builder
	log, closeLog, err := telemetry.NewLogger(telemetry.LogConfig{Level: "info", Format: "text"}, &out)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := telemetry.WithRequest(context.Background(), "r1")
	telemetry.Event(ctx, log, slog.LevelWarn, "failover", "upstream", "local-small", "status", 503, "next", "hosted-small")
	_ = closeLog()
	_, line, _ := strings.Cut(out.String(), " ") // without the time
	fmt.Print(line)
	// Output: WRN [llm-proxy] failover upstream=local-small status=503 next=hosted-small rid=r1
}
