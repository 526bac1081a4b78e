package store

import (
	"database/sql/driver"
	"strings"
	"time"
	"unicode/utf8"

	"hydrallm/shared/query"
)

const dayLayout = "2006-01-02"

// Time is an instant to store: what is read is a query.Time.
type Time struct{ time.Time }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) { return t.text(), nil }

// text is Value for where many rows are written: drivers need reflection to find a Valuer.
func (t Time) text() string { return query.Time(t).String() }

// optional gives what v points to, or NULL.
func optional[T any](v *T) any {
	if v == nil {
		return nil
	}
	return *v
}

// plausible gives at, or now when no clock can have said at: clocks of other machines may be wrong, and rows are pruned by age.
func plausible(at, now time.Time) Time {
	if at.Year() < 2000 || at.After(now.Add(24*time.Hour)) {
		return Time{now}
	}
	return Time{at}
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
