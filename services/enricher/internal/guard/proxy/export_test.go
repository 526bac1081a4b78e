package proxy

import (
	"context"
	"log/slog"
	"time"

	"hydrallm/services/enricher/internal/guard"
)

// StartSmall starts a proxy that passes little on, with time for the slowest machine.
func StartSmall(ctx context.Context, g *guard.Guard, log *slog.Logger) (*Proxy, error) {
	return start(ctx, g, log, limits{down: MaxDown, up: MaxUp, idle: time.Hour, life: time.Hour})
}

// Bytes that a proxy of StartSmall passes on.
const (
	MaxDown = 1 << 20
	MaxUp   = 64 << 10
)
