package store

import (
	"database/sql/driver"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	timeLayout = "2006-01-02T15:04:05.000Z"
	dayLayout  = "2006-01-02"
)

// Time is an instant as the database keeps it and an answer shows it: UTC with Z, to the millisecond.
type Time struct{ time.Time }

// String gives the text that SQLite stores.
func (t Time) String() string { return t.UTC().Format(timeLayout) }

// MarshalJSON implements json.Marshaler in place of the method of the embedded time.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.String(), nil }

// Scan implements sql.Scanner for the text of SQLite and the timestamp of PostgreSQL.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		t.Time = v.UTC()
	case string:
		parsed, err := time.Parse(timeLayout, v)
		if err != nil {
			return fmt.Errorf("reading a time: %w", err)
		}
		t.Time = parsed
	default:
		return fmt.Errorf("reading a time: it is a %T", src)
	}
	return nil
}

// plausible gives at, or now when no clock can have said at: clocks of other machines may be wrong, and rows are pruned by age.
func plausible(at, now time.Time) Time {
	if at.Year() < 2000 || at.After(now.Add(24*time.Hour)) {
		return Time{now}
	}
	return Time{at}
}

// Document is JSON text from the database; empty means null.
type Document string

// MarshalJSON implements json.Marshaler.
func (d Document) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("null"), nil
	}
	return []byte(d), nil
}

// Bounds of stored texts, in bytes.
const (
	maxName     = 256
	maxMessage  = 4096
	maxDocument = 16 << 10
)

// clip gives s as text that both databases take, valid UTF-8 without NUL, cut to limit bytes between characters.
func clip(s string, limit int) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// maxCount bounds what a single fact may add to a sum, so that sums stay far from the end of 64 bits.
const maxCount = 1 << 40

// count gives n as a number that is safe to add up.
func count(n int64) int64 { return min(max(n, 0), maxCount) }
