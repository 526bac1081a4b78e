package sessionwriter

import (
	"context"

	"hydrallm/services/session-writer/internal/store"
)

// Schema says how far the schema of a database is.
type Schema = store.Schema

// ErrUnsettled says that a SQLite database was left in the middle of something, and can't be read without a write.
var ErrUnsettled = store.ErrUnsettled

// InspectDatabase reads the state of a database (config.Sessions.Database, in clear), without changing anything of it or keeping anybody from it. No error
// shows the password of the address.
func InspectDatabase(ctx context.Context, address string) (Schema, error) {
	return store.Inspect(ctx, address)
}
