package query

import "time"

// Control is what every process of the gateway answers, once for each service that it runs.
const Control = "control"

// Reload has one service read its configuration file again; POST /v1/admin/reload. What the file says does not travel.
var Reload = Op[None, Reloaded]{Control, "reload", 30 * time.Second}

// Reloaded is what became of a configuration that was read again. Settings are named by their paths.
type Reloaded struct {
	Applied []string `json:"applied"`
	Restart []string `json:"needs_restart"`     // different in the file, and not in use before a restart
	Refused []string `json:"refused,omitempty"` // places of errors, as file:line: path; then nothing was applied. The log says what is wrong
}
