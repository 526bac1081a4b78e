package httpapi

import (
	"context"
	"errors"

	"hydrallm/services/ingress/internal/toolinstall"
	"hydrallm/shared/fault"
)

// Installer installs tools; *toolinstall.Installer does.
type Installer interface {
	Status(ctx context.Context, ask bool) map[string]toolinstall.State
	Install(ctx context.Context, name string) (output string, err error)
}

// installs says whether tools may be installed: never when the routes are open because there is no key.
func (a *API) installs() bool { return a.ToolInstall && !a.Admin.Open() }

// showTools shows which tools are there. They are not run unless they may be installed.
func showTools(x *exchange) error {
	return showJSON(x, x.api.Installer.Status(x.api.Queries(), x.api.installs()))
}

// installed is the answer to an installation.
type installed struct {
	Success bool   `json:"success"`
	Message string `json:"message"` // the end of what the programs said
}

// installTool installs a tool of the list. A caller can only choose which.
func installTool(x *exchange) error {
	a := x.api
	x.leaveBody()
	byHand, known := toolinstall.Instructions(x.id)
	switch {
	case !known:
		return fault.New(fault.NotFound, "There is no such tool")
	case !a.installs():
		return &fault.Fault{
			Kind: fault.Forbidden, Code: "tool_install_disabled",
			Message: "Installing tools is switched off (server.tool_install), and never possible without an admin key. By hand: " + byHand,
		}
	}
	output, err := a.Installer.Install(a.Queries(), x.id)
	switch {
	case errors.Is(err, toolinstall.ErrBusy):
		return fault.New(fault.Conflict, "A tool is being installed already")
	case err != nil:
		x.note("failed", err.Error())
		return showJSON(x, installed{Message: err.Error() + "\n" + output})
	}
	return showJSON(x, installed{Success: true, Message: output})
}
