package store

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

const postgresDriver = "postgres"

func newPostgres(address string) (*Store, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the database is not a valid URL") // the reason would quote it, and with it the password
	}
	cfg, err := pq.NewConfig(address)
	if err != nil {
		return nil, scrub(err, u)
	}
	cfg.BinaryParameters = true // a statement goes in one message, not two
	connector, err := pq.NewConnectorConfig(cfg)
	if err != nil {
		return nil, scrub(err, u)
	}
	s := &Store{ids: newIDs(), ready: new(atomic.Bool)}
	s.write = sqlx.NewDb(sql.OpenDB(gate{connector, s.ready}), postgresDriver)
	s.write.SetMaxOpenConns(pgConns)
	s.write.SetMaxIdleConns(pgConns)
	s.write.SetConnMaxIdleTime(5 * time.Minute)
	s.read = s.write
	s.migrateTo = func(ctx context.Context, to int64) error {
		db := sqlx.NewDb(sql.OpenDB(connector), postgresDriver)
		err := reach(ctx, db)
		if err == nil {
			err = migratePostgres(ctx, db.DB, to)
		}
		if err = errors.Join(err, db.Close()); err != nil {
			return scrub(err, u)
		}
		return nil
	}
	return s, nil
}

// scrubbedError is an error whose text had secrets in it.
type scrubbedError struct {
	text string
	err  error
}

func (e *scrubbedError) Error() string { return e.text }

func (e *scrubbedError) Unwrap() error { return e.err }

// scrub takes the passwords of an address out of the text of an error.
func scrub(err error, address *url.URL) error {
	text := err.Error()
	for _, secret := range secrets(address) {
		text = strings.ReplaceAll(text, secret, "***")
	}
	if text == err.Error() {
		return err
	}
	return &scrubbedError{text: text, err: err}
}

func secrets(address *url.URL) []string {
	var found []string
	add := func(s string) {
		if s != "" {
			found = append(found, s, url.QueryEscape(s), url.PathEscape(s))
		}
	}
	if password, ok := address.User.Password(); ok {
		add(password)
		_, escaped, _ := strings.Cut(address.User.String(), ":")
		found = append(found, escaped)
	}
	for _, key := range []string{"password", "sslpassword"} {
		add(address.Query().Get(key))
	}
	return found
}
