package movein

import (
	"bytes"
	"fmt"
	"strings"
	"unicode"

	"hydrallm/shared/config"
)

// maxHead bounds the comments at the head of a result, in bytes: the gateway reads files of up to 1 MiB.
const maxHead = 256 << 10

// head writes what a reader of the result has to know, as comments.
func (r *Result) head(source string) string {
	h := &lines{begin: "# "}
	h.line("Taken over from %s, a configuration of %s.", source, r.Format)
	h.line("docs/moving-in.md says what is taken and what is not; docs/configuration.md describes every key.")
	if len(r.vars.all) > 0 {
		h.line("")
		h.line("Variables that must be set:")
		for _, v := range r.vars.all {
			if v.Literal {
				h.line("  %s: was in plain at %s", v.Name, v.From)
			} else {
				h.line("  %s: %s", v.Name, v.From)
			}
		}
	}
	if len(r.Steps) > 0 {
		h.line("")
		h.line("To do by hand:")
		for _, s := range r.Steps {
			h.line("  %s", s)
		}
	}
	for _, taken := range []bool{false, true} {
		list := r.list(taken)
		if len(list) == 0 {
			continue
		}
		h.line("")
		h.line("%s", map[bool]string{false: "Not taken:", true: "Taken, but with another meaning:"}[taken])
		for i, f := range list {
			if h.text.Len() > maxHead {
				h.line("  and %d more, which hydrallm import has listed on standard error", len(list)-i)
				break
			}
			h.line("  %s", f)
		}
	}
	return h.text.String() + "\n"
}

// list gives the findings of one kind.
func (r *Result) list(taken bool) []Finding {
	var all []Finding
	for _, f := range r.Findings {
		if f.Taken == taken {
			all = append(all, f)
		}
	}
	return all
}

// Report writes what became of the source, for people: what is not taken, what is taken otherwise, which variables are needed.
func (r *Result) Report() string {
	h := &lines{}
	section := func(title string, all []string) {
		if len(all) == 0 {
			return
		}
		h.line("%s (%d):", title, len(all))
		for _, l := range all {
			h.line("  %s", l)
		}
	}
	texts := func(taken bool) (all []string) {
		for _, f := range r.list(taken) {
			all = append(all, f.String())
		}
		return all
	}
	section("Not taken", texts(false))
	section("Taken, but with another meaning", texts(true))
	section("The check of the result warns", r.Warnings)
	section("To do by hand", r.Steps)
	return h.text.String()
}

// lines are lines of text. What the source holds can make no line of its own, and nothing that a terminal obeys;
// what looks like a secret is not shown.
type lines struct {
	begin string
	text  bytes.Buffer
}

func (l *lines) line(format string, args ...any) {
	shown := strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == '\u2028' || c == '\u2029' || c == '\ufeff' {
			return ' '
		}
		return c
	}, config.Conceal(fmt.Sprintf(format, args...)))
	l.text.WriteString(strings.TrimRight(l.begin+shown, " ") + "\n")
}
