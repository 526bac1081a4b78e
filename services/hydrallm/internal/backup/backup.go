// Package backup makes backups of a gateway that does not run, and puts backups back. One that runs makes its own, at GET /v1/admin/backup.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"hydrallm/services/hydrallm/internal/broker"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/bus"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
	"hydrallm/shared/telemetry"
	"hydrallm/shared/topology"
)

// stopLimit bounds the stop of what was started for a backup.
const stopLimit = 30 * time.Second

// Errors of Make and Restore.
var (
	ErrNothing = errors.New("there is no database to back up")
	ErrOlder   = errors.New("the database is of an older version")
	ErrRunning = errors.New("the gateway runs: stop it first")
)

// sqliteFile is the path of the database, or "" for PostgreSQL.
func sqliteFile(s process.Settings) string {
	path, ok := strings.CutPrefix(s.Sessions.Database.Reveal(), "sqlite:")
	if !ok {
		return ""
	}
	return path
}

// Make writes a backup of a gateway that does not run: it starts the NATS server, unless that is another process, and the session writer.
func Make(ctx context.Context, settings process.Settings, log *slog.Logger, w io.Writer) (err error) {
	if file := sqliteFile(settings); file != "" {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w: %w", ErrNothing, err)
		}
	}
	is, known, err := sessionwriter.SchemaOf(ctx, settings.Sessions.Database.Reveal())
	switch {
	case err != nil:
		return err
	case is == 0:
		return ErrNothing
	case is < known: // the session writer would change it
		return fmt.Errorf("%w (schema %d, this is %d): make the backup with that version, or start the gateway first", ErrOlder, is, known)
	}
	server, nats, err := embedded(ctx, settings, settings.NATS.StoreDir, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(ctx, server)) }()
	connect := settings.Connection(topology.SessionWriter)
	connect.InProcess, connect.Logger = nats, log
	unit := process.NewUnit(connect, process.Parts{
		ID: process.NewID(topology.SessionWriter), Config: settings.Config, Version: process.Version(), Log: log, Metrics: telemetry.NewRegistry(process.Version()),
	}, sessionwriter.Build)
	if err := unit.Start(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(ctx, unit)) }()
	b, err := bus.Connect(ctx, connect)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeBus(ctx, b)) }()
	return fetch(ctx, b, w)
}

// fetch asks for a backup, piece by piece.
func fetch(ctx context.Context, b *bus.Bus, w io.Writer) error {
	piece, err := query.GetBackup.Ask(ctx, b, query.BackupPiece{})
	for i := 1; err == nil; i++ {
		if _, err := w.Write(piece.Data); err != nil {
			return err
		}
		if piece.End {
			return nil
		}
		piece, err = query.GetBackup.Ask(ctx, b, query.BackupPiece{ID: piece.ID, Piece: i}) // there is one session writer
	}
	return err
}

// embedded starts the NATS server of a directory; nothing when it is another process.
func embedded(ctx context.Context, settings process.Settings, dir string, log *slog.Logger) (lifecycle.Service, bus.InProcess, error) {
	if settings.NATS.URL != "" {
		return nil, nil, nil
	}
	server := broker.New(broker.Config{StoreDir: dir}, log)
	err := server.Start(ctx)
	if errors.Is(err, broker.ErrInUse) {
		err = fmt.Errorf("%w (%w)", ErrRunning, err)
	}
	if err != nil {
		return nil, nil, err
	}
	return server, server, nil
}

func stop(ctx context.Context, s lifecycle.Service) error {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return s.Stop(ctx)
}

func closeBus(ctx context.Context, b *bus.Bus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return b.Close(ctx)
}
