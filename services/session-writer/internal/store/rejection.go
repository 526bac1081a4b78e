package store

import (
	"errors"
	"fmt"

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
