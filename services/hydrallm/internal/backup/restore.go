package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"hydrallm/services/hydrallm/internal/broker"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/bus"
	"hydrallm/shared/process"
	"hydrallm/shared/topology"
)

// restoring ends the names of what is being put together, beside the place where it belongs.
const restoring = ".restoring"

// ErrHalf says that a restore changed something and did not come to its end.
var ErrHalf = errors.New("the restore is INCOMPLETE: run it again with --force")

// Restored says what was done.
type Restored struct {
	Backup sessionwriter.Backup
	Aside  []string // where the data from before are; files and directories
}

// Restore puts a backup in the place of the data of a gateway that does not run. Data that are there are an error that wraps sessionwriter.ErrNotEmpty, unless
// force is given: files are moved aside then, tables and values of other servers are replaced. The whole backup is checked first, and what belongs into files
// is put together beside them, so that an error leaves everything as it was, unless it wraps ErrHalf.
func Restore(ctx context.Context, settings process.Settings, file io.ReadSeeker, force bool, log *slog.Logger) (done Restored, err error) {
	if done.Backup, err = sessionwriter.CheckBackup(file); err != nil {
		return done, err
	}
	r := &restore{settings: settings, file: file, backup: done.Backup, force: force, log: log}
	if settings.NATS.URL == "" {
		err = r.alone(ctx)
	} else {
		err = r.cluster(ctx)
	}
	done.Aside = r.aside
	return done, err
}

type restore struct {
	settings process.Settings
	file     io.ReadSeeker
	backup   sessionwriter.Backup
	force    bool
	log      *slog.Logger

	moves []move
	aside []string
}

// move is what replaces something when all is ready.
type move struct{ from, to string }

// again gives the archive from its begin.
func (r *restore) again() (io.Reader, error) {
	_, err := r.file.Seek(0, io.SeekStart)
	return r.file, err
}

// alone restores a gateway with a NATS server of its own.
func (r *restore) alone(ctx context.Context) (err error) {
	dir := r.settings.NATS.StoreDir
	release, err := broker.Claim(dir)
	if errors.Is(err, broker.ErrInUse) {
		return fmt.Errorf("%w (%w)", ErrRunning, err)
	}
	if err != nil {
		return err
	}
	held := true
	defer func() {
		if held {
			release()
		}
	}()
	defer func() { r.clean() }()
	used, err := broker.Used(dir)
	if err != nil {
		return err
	}
	if used && !r.force {
		return fmt.Errorf("%s: %w", dir, sessionwriter.ErrNotEmpty)
	}
	if err := r.fill(ctx, dir+restoring); err != nil {
		return err
	}
	r.moves = append(r.moves, move{dir + restoring, dir})
	if err := r.database(ctx); err != nil {
		return err
	}
	held = false
	release()
	if !used { // what Claim has made is nothing to be kept
		_ = os.Remove(filepath.Join(dir, "lock")) // swap moves what can't be removed
		_ = os.Remove(dir)
	}
	return r.swap()
}

// fill makes a directory of a NATS server with the buckets of the backup.
func (r *restore) fill(ctx context.Context, dir string) (err error) {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	server, nats, err := embedded(ctx, r.settings, dir, r.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(ctx, server)) }()
	return r.buckets(ctx, nats)
}

func (r *restore) buckets(ctx context.Context, nats bus.InProcess) (err error) {
	b, err := r.connect(ctx, nats)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeBus(ctx, b)) }()
	in, err := r.again()
	if err != nil {
		return err
	}
	return sessionwriter.RestoreBuckets(ctx, in, b)
}

func (r *restore) connect(ctx context.Context, nats bus.InProcess) (*bus.Bus, error) {
	connect := r.settings.Connection(topology.SessionWriter)
	connect.InProcess, connect.Logger = nats, r.log
	return bus.Connect(ctx, connect)
}

// database restores PostgreSQL in place, and SQLite beside its place.
func (r *restore) database(ctx context.Context) error {
	in, err := r.again()
	if err != nil {
		return err
	}
	file := sqliteFile(r.settings)
	if file == "" {
		return sessionwriter.RestoreDatabase(ctx, in, r.backup, r.settings.Sessions.Database.Reveal(), r.force)
	}
	if _, err := os.Stat(file); err == nil && !r.force {
		return fmt.Errorf("%s: %w", file, sessionwriter.ErrNotEmpty)
	}
	beside := file + restoring
	r.moves = append(r.moves, move{beside, file})
	for _, ending := range append(endings(), "-lock") {
		if err := os.Remove(beside + ending); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return sessionwriter.RestoreDatabase(ctx, in, r.backup, "sqlite:"+beside, false)
}

// endings are those of the files of a SQLite database.
func endings() []string { return []string{"", "-wal", "-shm"} }

// swap moves what is there aside, and what was put together to its place.
func (r *restore) swap() error {
	before := ".before-" + time.Now().UTC().Format("20060102T150405.000Z")
	for i, m := range r.moves {
		for _, ending := range endings() {
			err := os.Rename(m.to+ending, m.to+before+ending)
			if err == nil && ending == "" {
				r.aside = append(r.aside, m.to+before)
			}
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return r.half(i, err)
			}
		}
		if err := os.Rename(m.from, m.to); err != nil {
			return r.half(i, err)
		}
	}
	return nil
}

// half is the error of the i-th move.
func (r *restore) half(i int, err error) error {
	if i == 0 && len(r.aside) == 0 && sqliteFile(r.settings) != "" {
		return err
	}
	return fmt.Errorf("%w: %w", ErrHalf, err)
}

// clean removes what was put together and has no place.
func (r *restore) clean() {
	paths := []string{r.settings.NATS.StoreDir + restoring}
	if file := sqliteFile(r.settings); file != "" {
		for _, ending := range append(endings(), "-lock") {
			paths = append(paths, file+restoring+ending)
		}
	}
	for _, p := range paths {
		if err := os.RemoveAll(p); err != nil {
			r.log.Warn("removing what is left of the restore", slog.Any("error", err))
		}
	}
}

// cluster restores a gateway with a NATS server of others, which runs without the services.
func (r *restore) cluster(ctx context.Context) (err error) {
	b, err := r.connect(ctx, nil)
	if err != nil {
		return err
	}
	there, err := process.Instances(ctx, b)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("%w: %v", ErrRunning, there)
	}
	if err == nil && !r.force {
		err = sessionwriter.BucketsEmpty(ctx, b)
	}
	if err = errors.Join(err, closeBus(ctx, b)); err != nil {
		return err
	}
	if sqliteFile(r.settings) != "" {
		defer func() { r.clean() }()
	}
	if err := r.database(ctx); err != nil {
		return err
	}
	if err := r.swap(); err != nil {
		return err
	}
	if err := r.buckets(ctx, nil); err != nil {
		return fmt.Errorf("%w: %w", ErrHalf, err)
	}
	return nil
}
