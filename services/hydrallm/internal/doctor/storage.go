package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	sessionwriter "hydrallm/services/session-writer"
)

// Free space that is little.
const (
	fullBytes   = 200 << 20
	nearlyBytes = 2 << 30
)

// disk looks at the directories that the gateway writes to.
func (d *doctor) disk(ctx context.Context) (rows []Row) {
	seen := map[string]bool{}
	look := func(what, dir string, counted bool) {
		if dir, err := filepath.Abs(dir); err == nil && !seen[dir] {
			seen[dir] = true
			rows = append(rows, directory(ctx, what, dir, counted))
		}
	}
	if d.Settings.NATS.URL == "" {
		look("nats.store_dir", d.Settings.NATS.StoreDir, true)
	}
	if path, ok := strings.CutPrefix(d.Settings.Sessions.Database.Reveal(), "sqlite:"); ok {
		look("sessions.database", filepath.Dir(path), false)
	}
	if d.Settings.Log.File != "" {
		look("log.file", filepath.Dir(d.Settings.Log.File), false)
	}
	if len(rows) == 0 {
		rows = append(rows, Row{Check: "disk", State: Skipped, Found: "nothing is kept on this machine"})
	}
	return rows
}

// directory looks at one, or at where it will be made. counted: what is in it is all the gateway's.
func directory(ctx context.Context, what, dir string, counted bool) Row {
	row := Row{Check: "disk: " + what, State: OK}
	at := dir
	for {
		info, err := os.Stat(at)
		if err == nil && !info.IsDir() {
			row.State, row.Found, row.Do = Fail, at+" is no directory", "remove it, or set "+what+" to another place"
			return row
		}
		if err == nil || !errors.Is(err, fs.ErrNotExist) || at == filepath.Dir(at) {
			break
		}
		at = filepath.Dir(at)
	}
	row.Found = dir
	if at == dir && counted {
		if used, ok := usedBytes(ctx, dir); ok {
			row.Found += ", " + size(used) + " used"
		}
	}
	if at != dir {
		row.Found += ", made at the first start"
	}
	if err := writable(at); err != nil {
		row.State, row.Found, row.Do = Fail, row.Found+": "+at+" can't be written to", "give it to the user that the gateway runs as ("+refused(err)+"), or set "+what+" to another place"
		return row
	}
	free, err := freeBytes(at)
	switch {
	case err != nil:
		row.Found += ", how much is free is not known"
	case free < fullBytes:
		row.State, row.Found, row.Do = Fail, row.Found+", only "+size(free)+" free", "make room: with a full disk requests of sessions and in the background fail"
	case free < nearlyBytes:
		row.State, row.Found, row.Do = Warn, row.Found+", "+size(free)+" free", "make room: docs/operations.md says what NATS and the database may grow to"
	default:
		row.Found += ", " + size(free) + " free, writable"
	}
	return row
}

func refused(err error) string {
	if errors.Is(err, syscall.EROFS) {
		return "the file system is read-only"
	}
	return err.Error()
}

// mostFiles bounds how many files are counted.
const mostFiles = 200_000

// usedBytes is the size of the files in a directory. ok is false when it can't be read to its end.
func usedBytes(ctx context.Context, dir string) (n uint64, ok bool) {
	files := 0
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if files++; err == nil && (files > mostFiles || ctx.Err() != nil) {
			return errors.New("too many files")
		}
		if err == nil && e.Type().IsRegular() { // it may have been removed meanwhile
			if info, err := e.Info(); err == nil {
				n += uint64(max(0, info.Size()))
			}
		}
		return nil
	})
	return n, err == nil
}

// database looks at the schema of the database.
func (d *doctor) database(ctx context.Context) []Row {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	address := d.Settings.Sessions.Database.Reveal()
	row := Row{Check: "database: PostgreSQL", State: Fail}
	local := strings.HasPrefix(address, "sqlite:")
	if local {
		row.Check = "database: SQLite"
	}
	s, err := sessionwriter.InspectDatabase(ctx, address)
	switch {
	case errors.Is(err, sessionwriter.ErrUnsettled):
		row.State, row.Found = Warn, err.Error()
	case err != nil && local:
		row.Found, row.Do = "it can't be read: "+err.Error(), "look whether the user that runs this may read the file, and whether it is a database; restore a backup if it is damaged"
	case err != nil:
		row.Found, row.Do = "it can't be used: "+err.Error(), "start the server, or mend sessions.database (DATABASE_URL); meanwhile requests go on without their history"
	case !s.Exists || s.Version == 0:
		row.State, row.Found = OK, "the first start makes it"
	case s.Version > s.Known:
		row.Found = fmt.Sprintf("its schema is version %d, and this program knows those up to %d", s.Version, s.Known)
		row.Do = "run the newer version that wrote it, or restore a backup from before"
	case s.Version < s.Known:
		row.State, row.Found = Warn, fmt.Sprintf("schema version %d of %d, %s", s.Version, s.Known, size(uint64(max(0, s.Bytes))))
		row.Do = "make a backup: the next start of this version migrates it, and older versions do not read it then"
	default:
		row.State, row.Found = OK, fmt.Sprintf("schema version %d, no migration is pending, %s", s.Version, size(uint64(max(0, s.Bytes))))
	}
	return []Row{row}
}
