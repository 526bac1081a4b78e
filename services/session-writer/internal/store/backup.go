package store

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// backedUp are the tables, referenced ones first. Databases of older schemas do not have all of them.
var backedUp = []string{
	"sessions", "messages", "parts", "system_settings", "settings", "system_logs", "usage_metrics", "attempts", "daily_usage", "provider_health",
	"scraping_metrics", "responses", "client_usage",
}

// versions is where goose keeps what has been migrated.
const versions = "goose_db_version"

// chunkBytes is the size from which on rows begin another chunk.
const chunkBytes = 1 << 20

// Errors of backups.
var (
	ErrNotEmpty = errors.New("the database is not empty")
	errRow      = errors.New("a row of the backup can't be read")
)

// Export gives the rows of all tables as they are at one moment, in chunks of lines: an array of the names of the columns, then one of values for each
// row. It gives the version of the schema. The chunk is take's own until it returns.
func (s *Store) Export(ctx context.Context, take func(table string, chunk []byte) error) (schema int64, err error) {
	tx, err := s.read.BeginTxx(ctx, &sql.TxOptions{ReadOnly: true, Isolation: s.snapshot()})
	if err != nil {
		return 0, fmt.Errorf("beginning a transaction: %w", err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing was written
	if err := tx.GetContext(ctx, &schema, "SELECT MAX(version_id) FROM "+versions); err != nil {
		return 0, fmt.Errorf("reading the version of the schema: %w", err)
	}
	for _, table := range backedUp {
		if err := exportTable(ctx, tx, table, take); err != nil {
			return 0, fmt.Errorf("reading table %s: %w", table, err)
		}
	}
	return schema, nil
}

// snapshot is the isolation in which all statements of a transaction see the same. SQLite's always do.
func (s *Store) snapshot() sql.IsolationLevel {
	if s.read == s.write {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault
}

func exportTable(ctx context.Context, tx *sqlx.Tx, table string, take func(table string, chunk []byte) error) error {
	rows, err := tx.QueryxContext(ctx, "SELECT * FROM "+table)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // Err says what went wrong
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = t.Name()
	}
	head, err := json.Marshal(names)
	if err != nil {
		return err
	}
	var chunk bytes.Buffer
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return err
		}
		for i, v := range values {
			values[i] = portable(v, types[i].DatabaseTypeName() == "DATE")
		}
		line, err := json.Marshal(values)
		if err != nil {
			return err
		}
		if chunk.Len() == 0 {
			chunk.Write(append(head, '\n'))
		}
		if chunk.Write(append(line, '\n')); chunk.Len() >= chunkBytes {
			if err := take(table, chunk.Bytes()); err != nil {
				return err
			}
			chunk.Reset()
		}
	}
	if err := rows.Err(); err != nil || chunk.Len() == 0 {
		return err
	}
	return take(table, chunk.Bytes())
}

// portable gives a value in the form that both databases take.
func portable(v any, date bool) any {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case time.Time:
		if date {
			return v.Format(time.DateOnly)
		}
		return v.UTC().Format("2006-01-02T15:04:05.000Z")
	case bool:
		if v {
			return 1
		}
		return 0
	default:
		return v
	}
}

// Restorer puts the chunks of a backup into a database in one transaction.
type Restorer struct {
	store    *Store
	tx       *sqlx.Tx
	postgres bool
}

// Restore begins to fill the database of a store that was not prepared. It is brought to the schema of the backup, and to the program's by Commit. The error
// is ErrNotEmpty when it has tables, unless replace says that these are to be removed, and ErrNewer for a schema that this program does not know. The caller
// must Commit or Discard.
func Restore(ctx context.Context, address string, schema int64, replace bool) (*Restorer, error) {
	s, err := newStore(address)
	if err != nil {
		return nil, err
	}
	r := &Restorer{store: s, postgres: s.lock == nil}
	if err := r.begin(ctx, schema, replace); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return r, nil
}

func (r *Restorer) begin(ctx context.Context, schema int64, replace bool) (err error) {
	if schema > KnownSchema() {
		return fmt.Errorf("%w: the backup has %d, and this version knows schemas up to %d", ErrNewer, schema, KnownSchema())
	}
	if err := r.store.migrateTo(ctx, 0); err != nil { // it is there, and its schema is no newer
		return fmt.Errorf("reaching the database: %w", err)
	}
	r.store.ready.Store(true)
	db := r.store.write
	current, err := r.version(ctx)
	if err != nil {
		return err
	}
	if current > 0 && !replace {
		return ErrNotEmpty
	}
	if current > 0 {
		if err := r.store.inTx(ctx, func(tx *sqlx.Tx) error {
			for _, table := range dropped() {
				if _, err := tx.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return fmt.Errorf("removing the tables: %w", err)
		}
	}
	if err := r.store.migrateTo(ctx, schema); err != nil {
		return fmt.Errorf("making the tables: %w", err)
	}
	r.tx, err = db.BeginTxx(ctx, nil)
	return err
}

// version is that of the schema, 0 for none.
func (r *Restorer) version(ctx context.Context) (v int64, err error) {
	err = r.store.write.GetContext(ctx, &v, "SELECT MAX(version_id) FROM "+versions)
	return v, err
}

// Take stores a chunk of Export.
func (r *Restorer) Take(ctx context.Context, table string, chunk []byte) error {
	if !slices.Contains(backedUp, table) {
		return fmt.Errorf("%w: there is no table %q", errRow, table)
	}
	lines := bufio.NewReader(bytes.NewReader(chunk))
	var names []string
	if err := nextLine(lines, &names); err != nil {
		return fmt.Errorf("%w: table %s: %w", errRow, table, err)
	}
	if len(names) == 0 {
		return fmt.Errorf("%w: table %s has no columns", errRow, table)
	}
	for _, n := range names {
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyz_0123456789") != "" {
			return fmt.Errorf("%w: table %s has a column %q", errRow, table, n)
		}
	}
	overriding := ""
	if r.postgres {
		overriding = " OVERRIDING SYSTEM VALUE"
	}
	insert := "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ")" + overriding + " VALUES (?" + strings.Repeat(", ?", len(names)-1) + ")"
	statement, err := r.tx.PreparexContext(ctx, r.tx.Rebind(insert))
	if err != nil {
		return fmt.Errorf("storing into table %s: %w", table, err)
	}
	defer statement.Close() //nolint:errcheck // it ends with the transaction
	for {
		var values []any
		err := nextLine(lines, &values)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%w: table %s: %w", errRow, table, err)
		}
		if len(values) != len(names) {
			return fmt.Errorf("%w: table %s: it has %d values for %d columns", errRow, table, len(values), len(names))
		}
		if err := r.insert(ctx, statement, table, names, values); err != nil {
			return fmt.Errorf("storing into table %s: %w", table, err)
		}
	}
}

func (r *Restorer) insert(ctx context.Context, statement *sqlx.Stmt, table string, names []string, values []any) error {
	for i, v := range values {
		if n, ok := v.(json.Number); ok {
			whole, err := n.Int64()
			if err != nil {
				return fmt.Errorf("%w: %s", errRow, names[i])
			}
			values[i] = whole
		}
		if table == "sessions" && names[i] == "applied" {
			values[i] = int64(0) // a place in a stream that begins anew
		}
	}
	_, err := statement.ExecContext(ctx, values...)
	return err
}

// nextLine decodes a line, with numbers as they are written.
func nextLine(lines *bufio.Reader, into any) error {
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return fmt.Errorf("decoding a row: %w", err)
	}
	return nil
}

// numbered are the tables whose ids the database counts.
var numbered = []string{"system_logs", "usage_metrics", "attempts", "scraping_metrics"}

// Commit makes what was taken the content of the database, and brings it to the schema of the program.
func (r *Restorer) Commit(ctx context.Context) error {
	if err := r.tx.Commit(); err != nil {
		return errors.Join(fmt.Errorf("committing: %w", err), r.store.Close())
	}
	return errors.Join(r.finish(ctx), r.store.Close())
}

func (r *Restorer) finish(ctx context.Context) error {
	if err := r.store.migrateTo(ctx, latest); err != nil {
		return err
	}
	if !r.postgres {
		return nil
	}
	for _, table := range numbered {
		count := "SELECT setval(pg_get_serial_sequence('" + table + "', 'id'), COALESCE((SELECT MAX(id) FROM " + table + "), 0) + 1, false)"
		if _, err := r.store.write.ExecContext(ctx, count); err != nil {
			return fmt.Errorf("counting on in table %s: %w", table, err)
		}
	}
	return nil
}

// Discard leaves the database without rows.
func (r *Restorer) Discard() error { return errors.Join(r.tx.Rollback(), r.store.Close()) }

// SchemaOf is the version of the schema of a database, 0 for one without tables. Nothing is changed, but that a SQLite file is made where there is none.
func SchemaOf(ctx context.Context, address string) (v int64, err error) {
	s, err := newStore(address)
	if err != nil {
		return 0, err
	}
	if err := s.migrateTo(ctx, 0); err != nil {
		return 0, errors.Join(err, s.Close())
	}
	s.ready.Store(true)
	r := Restorer{store: s}
	v, err = r.version(ctx)
	return v, errors.Join(err, s.Close())
}

// KnownSchema is the version of the schema of this program.
func KnownSchema() int64 {
	v, err := newest("migrations/sqlite")
	if err != nil {
		panic(err) // they are part of the program
	}
	return v
}

// dropped are all tables, those that refer to others first.
func dropped() []string {
	all := append([]string{versions}, backedUp...)
	slices.Reverse(all)
	return all
}
