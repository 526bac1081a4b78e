package store

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/lib/pq"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrRejected says that the database refuses the data itself: another try would end the same way.
var ErrRejected = errors.New("data is rejected by the database")

// rejection marks err with ErrRejected if it is about the data and not about the state of the database.
func rejection(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff { // the primary code of an extended one
		case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG:
			return fmt.Errorf("%w: %w", ErrRejected, err)
		}
	}
	if e, ok := errors.AsType[*pq.Error](err); ok {
		switch e.Code.Class() {
		case "22", "23", "54": // data exception, constraint violation, limit exceeded
			return fmt.Errorf("%w: %w", ErrRejected, err)
		}
	}
	return err
}

// Hopeless says whether a database that could not be prepared will not be there by itself either: somebody has to change the configuration, or the database.
func Hopeless(err error) bool {
	if errors.Is(err, ErrNewer) || errors.Is(err, ErrInUse) || errors.Is(err, fs.ErrPermission) || errors.Is(err, pq.ErrSSLNotSupported) {
		return true
	}
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		switch e.Code() & 0xff {
		case sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_PERM:
			return true
		}
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok { // full and read-only disks pass
		return !errors.Is(e, syscall.ENOSPC) && !errors.Is(e, syscall.EROFS) && !errors.Is(e, syscall.EIO)
	}
	if e, ok := errors.AsType[*pq.Error](err); ok {
		switch e.Code.Class() {
		case "28", "3D", "42": // authorization, no such database, a schema that is not the program's
			return true
		}
	}
	return false
}
