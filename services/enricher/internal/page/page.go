// Package page says what a page of the web is once it has been read.
package page

import (
	"strings"
	"time"
)

// MaxRunes is the most that is kept of one page before what answers a question is chosen from it.
const MaxRunes = 25_000

// Document is the readable text of a page.
type Document struct {
	URL       string    // where it was in the end, after redirects
	Title     string    // "" = none was found
	Published time.Time // the day; zero = none was found
	Text      string    // Markdown of the main content, at most MaxRunes characters, without title and date
}

// Empty says whether there is nothing to read.
func (d *Document) Empty() bool { return strings.TrimSpace(d.Text) == "" }
