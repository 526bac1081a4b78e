package query

import (
	"fmt"
	"time"
)

// TimeLayout is how answers show an instant, and how a database without a type for it keeps it: UTC with Z, to the millisecond.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Time is an instant in an answer. It is a sql.Scanner.
type Time struct{ time.Time }

// String gives the text of TimeLayout.
func (t Time) String() string { return t.UTC().Format(TimeLayout) }

// MarshalJSON takes the place of the method of the embedded time.
func (t Time) MarshalJSON() ([]byte, error) { return []byte(`"` + t.String() + `"`), nil }

// Scan takes a text of TimeLayout or a time.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case time.Time:
		t.Time = v.UTC()
	case string:
		parsed, err := time.Parse(TimeLayout, v)
		if err != nil {
			return fmt.Errorf("reading a time: %w", err)
		}
		t.Time = parsed
	default:
		return fmt.Errorf("reading a time: it is a %T", src)
	}
	return nil
}

// Document is JSON text inside an answer; empty means null.
type Document string

// MarshalJSON gives the text as it is.
func (d Document) MarshalJSON() ([]byte, error) {
	if d == "" {
		return []byte("null"), nil
	}
	return []byte(d), nil
}

// UnmarshalJSON keeps the text as it is.
func (d *Document) UnmarshalJSON(text []byte) error {
	if *d = Document(text); *d == "null" {
		*d = ""
	}
	return nil
}
