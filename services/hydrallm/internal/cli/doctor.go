package cli

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	"hydrallm/services/dispatcher"
	"hydrallm/services/hydrallm/internal/doctor"
	"hydrallm/services/hydrallm/internal/phrase"
	"hydrallm/shared/process"
)

type doctorCmd struct {
	Config    string        `help:"The configuration file; without it the one that the gateway would use." placeholder:"FILE"`
	URL       string        `help:"The running gateway; without it the configured address, if something listens there." placeholder:"URL"`
	JSON      bool          `help:"Print JSON instead of a table."`
	Stream    bool          `default:"true" negatable:"" help:"Ask one model of each provider, and one through the gateway, for a streamed answer of at most 16 tokens."`
	AllModels bool          `help:"Ask every configured model."`
	Model     string        `help:"The model to ask the running gateway for; without it the first of the configuration, or auto." placeholder:"MODEL"`
	Timeout   time.Duration `default:"20s" help:"Limit of each check (${default}); answers may take three times as long."`
}

// Validate refuses values that make no sense.
func (c doctorCmd) Validate() error {
	if c.Timeout <= 0 {
		return errors.New("--timeout: must be above 0")
	}
	if c.URL == "" {
		return nil
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return errors.New("--url: must be the address of a gateway, such as http://127.0.0.1:8100")
	}
	return nil
}

// Run prints what it finds. It fails when a check does.
func (c doctorCmd) Run(a *App) error {
	env := a.Env
	env.File = c.Config
	settings, err := process.LoadFrom(env, process.Overrides{})
	o := doctor.Options{Settings: settings, Invalid: err, URL: c.URL, Model: c.Model, Limit: c.Timeout}
	switch {
	case c.Stream && c.AllModels:
		o.Questions = dispatcher.AllModels
	case c.Stream:
		o.Questions = dispatcher.OneQuestion
	}
	report := doctor.Run(a.Ctx, o)
	if c.JSON {
		err = report.WriteJSON(a.Out)
	} else {
		err = report.WriteTable(a.Out, look(a.Out, env.Lookup))
	}
	if err != nil {
		return err
	}
	if n := report.Counts[doctor.Fail]; n > 0 {
		return fmt.Errorf("%d of %s failed", n, phrase.Count(len(report.Checks), "check"))
	}
	return nil
}

// look is plain unless the output is a terminal. There it has colours if the user wants them (https://no-color.org).
func look(out io.Writer, lookup func(string) (string, bool)) doctor.Look {
	f, ok := out.(*os.File)
	if !ok {
		return doctor.Look{}
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return doctor.Look{}
	}
	v, _ := lookup("NO_COLOR")
	return doctor.Look{Coloured: v == "", Width: doctor.TerminalWidth(f)}
}
