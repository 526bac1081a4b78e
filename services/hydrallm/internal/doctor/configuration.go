package doctor

import (
	"context"
	"errors"
	"fmt"

	"hydrallm/services/hydrallm/internal/phrase"
	"hydrallm/shared/config"
)

// configuration says whether the configuration is valid. Each finding is a row.
func (d *doctor) configuration(context.Context) []Row {
	var rows []Row
	s := d.Settings
	invalid, found := errors.AsType[*config.InvalidError](d.Invalid)
	switch {
	case found:
		for _, f := range invalid.Findings {
			rows = append(rows, Row{Check: "configuration", State: Fail, Found: f.String(), Do: "mend the line; docs/configuration.md has all keys. The gateway does not start with it"})
		}
	case d.Invalid != nil:
		rows = append(rows, Row{Check: "configuration", State: Fail, Found: d.Invalid.Error(), Do: "name the file with --config or CONFIG_PATH"})
	default:
		rows = append(rows, Row{
			Check: "configuration", State: OK,
			Found: fmt.Sprintf("%s is valid: %s, %s, %s", s.Source, phrase.Count(len(s.Providers), "provider"), phrase.Count(len(s.Upstreams), "upstream"),
				phrase.Count(len(s.Models), "model")),
		})
		if hint := s.EmptyHint(); hint != "" {
			rows = append(rows, Row{Check: "configuration", State: Warn, Found: "nothing is configured", Do: hint})
		}
	}
	for _, w := range s.Warnings {
		rows = append(rows, Row{Check: "configuration", State: Warn, Found: w.String(), Do: "mend or remove the line"})
	}
	return rows
}
