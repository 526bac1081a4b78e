package store

import (
	"strings"

	"hydrallm/shared/query"
)

// filter collects the conditions of a statement, with what stands for their question marks.
type filter struct {
	conditions []string
	args       []any
}

// pageOf gives the conditions of a part of a list.
func pageOf(p query.Page) filter {
	var f filter
	if p.Before > 0 {
		f.and("id < ?", p.Before)
	}
	if p.After > 0 {
		f.and("id > ?", p.After)
	}
	return f
}

func (f *filter) and(condition string, args ...any) {
	f.conditions = append(f.conditions, condition)
	f.args = append(f.args, args...)
}

// is asks for a value of a column, if there is one to ask for.
func (f *filter) is(column, value string) {
	if value != "" {
		f.and(column+" = ?", clip(value, maxName))
	}
}

func (f *filter) where() string {
	if len(f.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(f.conditions, " AND ")
}

// likeEscaper takes the meaning from what LIKE gives one, for ESCAPE '!'.
var likeEscaper = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

func escapeLike(text string) string { return likeEscaper.Replace(clip(text, maxName)) }

const defaultRows = 50

// bounded gives how many rows are read: 1 to most, and a usual number for 0.
func bounded(limit, most int) int {
	if limit == 0 {
		limit = defaultRows
	}
	return min(max(limit, 1), most)
}
