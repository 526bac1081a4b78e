package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"hydrallm/shared/config"
)

// State is how a check ended.
type State string

// States.
const (
	OK      State = "ok"
	Warn    State = "warn"    // it works, and may not for long or not as well as it could
	Fail    State = "fail"    // it does not work
	Skipped State = "skipped" // nothing is known
)

// Row is the result of one check.
type Row struct {
	Check string `json:"check"` // such as "provider groq: key 1"
	State State  `json:"state"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"` // what to do about it; "" = nothing
}

// Report is the results of all checks.
type Report struct {
	Version string        `json:"version"` // of this program
	State   State         `json:"state"`   // the worst of the checks: ok, warn or fail
	Counts  map[State]int `json:"counts"`
	Checks  []Row         `json:"checks"`
}

// newReport sums up rows. The secrets are taken out of them, wherever they come from.
func newReport(version string, rows []Row, secrets []string) Report {
	clean := config.Redactor(secrets)
	r := Report{Version: version, State: OK, Counts: map[State]int{OK: 0, Warn: 0, Fail: 0, Skipped: 0}, Checks: []Row{}}
	for _, row := range rows {
		row.Check, row.Found, row.Do = oneLine(clean.Replace(row.Check)), oneLine(clean.Replace(row.Found)), oneLine(clean.Replace(row.Do))
		r.Checks = append(r.Checks, row)
		r.Counts[row.State]++
	}
	switch {
	case r.Counts[Fail] > 0:
		r.State = Fail
	case r.Counts[Warn] > 0:
		r.State = Warn
	}
	return r
}

// oneLine makes text fit for a cell: whatever comes from elsewhere moves no cursor and begins no line.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r <= 0x9f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return strings.Join(strings.Fields(text), " ")
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(r)
}

var colours = map[State]string{OK: "32", Warn: "33", Fail: "31", Skipped: "2"}

// Look is how a table is written.
type Look struct {
	Coloured bool
	Width    int // of the terminal, in which long cells take several lines; 0 = none, and each row is a line
}

// gap is between two columns.
const gap = 2

// WriteTable writes the report for people.
func (r Report) WriteTable(w io.Writer, look Look) error {
	cells := [][]string{{"CHECK", "STATE", "FOUND", "WHAT TO DO"}}
	for _, row := range r.Checks {
		cells = append(cells, []string{row.Check, string(row.State), row.Found, row.Do})
	}
	widths := look.widths(cells)
	var b strings.Builder
	for _, row := range cells {
		columns := make([][]string, len(row))
		height := 1
		for i, cell := range row {
			columns[i] = wrap(cell, widths[i])
			height = max(height, len(columns[i]))
		}
		for n := range height {
			var line strings.Builder
			for i, column := range columns {
				cell := ""
				if n < len(column) {
					cell = column[n]
				}
				space := strings.Repeat(" ", max(0, widths[i]-utf8.RuneCountInString(cell))+gap)
				if colour := colours[State(cell)]; look.Coloured && i == 1 && colour != "" {
					cell = "\x1b[" + colour + "m" + cell + "\x1b[0m"
				}
				line.WriteString(cell + space)
			}
			b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
		}
	}
	fmt.Fprintf(&b, "\n%d ok, %d to look at, %d failed, %d skipped\n", r.Counts[OK], r.Counts[Warn], r.Counts[Fail], r.Counts[Skipped])
	_, err := io.WriteString(w, b.String())
	return err
}

// narrowest is what a column with text has at least, however narrow the terminal is.
const narrowest = 24

// widths gives each column what its widest cell needs, or the last two what the terminal has left for them.
func (l Look) widths(cells [][]string) []int {
	widths := make([]int, len(cells[0]))
	for _, row := range cells {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	if l.Width == 0 {
		return widths
	}
	left := l.Width - widths[0] - widths[1] - 3*gap
	widths[2] = min(widths[2], max(narrowest, left/2))
	widths[3] = min(widths[3], max(narrowest, left-widths[2]))
	return widths
}

// wrap breaks text at spaces, into lines of a width where words allow it.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// span shows a duration as people read it.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}

// size shows a number of bytes as people read it.
func size(n uint64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, prefixes := float64(n)/unit, "KMGTPE"
	for value >= unit && len(prefixes) > 1 {
		value, prefixes = value/unit, prefixes[1:]
	}
	return fmt.Sprintf("%.1f %ciB", value, prefixes[0])
}
