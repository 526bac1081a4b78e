package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hydrallm/services/hydrallm/internal/movein"
	"hydrallm/services/hydrallm/internal/newfile"
	"hydrallm/services/hydrallm/internal/phrase"
)

type importCmd struct {
	File    string `arg:"" help:"Configuration of the other gateway; - for standard input."`
	From    string `enum:",${formats}" default:"" help:"What it is of: ${formats}. Without it the file tells." placeholder:"NAME"`
	Output  string `short:"o" default:"config.yaml" help:"Where the configuration is written (${default}); - for standard output." placeholder:"FILE"`
	EnvFile string `help:"Also write the keys that the source has in plain to this file, as NAME=value, for its owner alone." placeholder:"FILE"`
	Force   bool   `help:"Replace files that are there already."`
}

const (
	standard  = "-" // input or output
	maxImport = 8 << 20
)

// Run takes a configuration over. What becomes of it goes to the error output, so that the standard output may be the configuration.
func (c importCmd) Run(a *App) error {
	source, err := c.source(a)
	if err != nil {
		return err
	}
	output, envFile := c.place(a, c.Output), c.place(a, c.EnvFile)
	if err := c.mayWrite(a, output, envFile); err != nil {
		return err
	}
	r, err := movein.Import(source)
	if r != nil {
		fmt.Fprint(a.ErrOut, r.Report())
	}
	if err != nil {
		return err
	}
	if err := c.write(a, r, output, envFile); err != nil {
		return err
	}
	c.next(a, r)
	return nil
}

// source reads the file.
func (c importCmd) source(a *App) (movein.Source, error) {
	s := movein.Source{Name: filepath.Base(c.File), Format: c.From}
	if c.File == standard {
		s.Name = "standard input"
		data, err := io.ReadAll(io.LimitReader(a.In, maxImport+1))
		s.Data = data
		return s, err
	}
	path := c.place(a, c.File)
	data, err := readUpTo(path, maxImport+1)
	if err != nil {
		return s, fmt.Errorf("reading the configuration: %w", err)
	}
	s.Data = data
	s.Read = func(name string) ([]byte, error) {
		data, err := readUpTo(filepath.Join(filepath.Dir(path), filepath.FromSlash(name)), maxImport+1)
		if path, ok := errors.AsType[*os.PathError](err); ok {
			err = path.Err // the name is in the message already
		}
		return data, err
	}
	return s, nil
}

func readUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // only read
	return io.ReadAll(io.LimitReader(f, most))
}

// place makes a path one from the working directory of the command.
func (c importCmd) place(a *App, path string) string {
	if path == "" || path == standard || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(a.Env.Dir, path)
}

// mayWrite refuses early what would not be written in the end.
func (c importCmd) mayWrite(a *App, output, envFile string) error {
	for _, path := range []string{output, envFile} {
		if path == "" || path == standard {
			continue
		}
		if same(path, c.place(a, c.File)) {
			return fmt.Errorf("%s is what is read: choose another name with --output", c.File)
		}
		if err := newfile.Free(path); err != nil && !c.Force {
			return fmt.Errorf("%w: choose another name, or replace it with --force", err)
		}
	}
	if output == envFile {
		return errors.New("--output and --env-file name one file")
	}
	return nil
}

func same(a, b string) bool {
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && os.SameFile(x, y)
}

// Modes of what is written: a configuration holds no secrets, a file of variables nothing else.
const (
	configMode = 0o644
	secretMode = 0o600
)

func (c importCmd) write(a *App, r *movein.Result, output, envFile string) error {
	if secrets := r.EnvFile(); envFile != "" && secrets != nil {
		if err := newfile.Write(envFile, secrets, secretMode, c.Force); err != nil {
			return err
		}
	}
	if output == standard {
		_, err := a.Out.Write(r.Config)
		return err
	}
	return newfile.Write(output, r.Config, configMode, c.Force)
}

// next says what was made, and what comes now.
func (c importCmd) next(a *App, r *movein.Result) {
	fmt.Fprintf(a.ErrOut, "%s is a configuration of %s: %s, %s, %s taken over\n", c.File, r.Format, phrase.Count(r.Providers, "provider"), phrase.Count(r.Upstreams, "upstream"),
		phrase.Count(r.Models, "model"))
	var missing, other []string
	plain := 0
	for _, v := range r.Variables() {
		_, set := a.Env.Lookup(v.Name)
		switch {
		case v.Literal:
			plain++
			if set {
				other = append(other, v.Name+": instead of the value at "+v.From)
			} else if c.EnvFile == "" {
				missing = append(missing, v.Name+": its value is in "+c.File+", at "+v.From)
			}
		case !set:
			missing = append(missing, v.Name+": "+v.From)
		}
	}
	if len(other) > 0 {
		fmt.Fprintf(a.ErrOut, "Variables that are set already, so that what they hold is used:\n  %s\n", strings.Join(other, "\n  "))
	}
	if len(missing) > 0 {
		fmt.Fprintf(a.ErrOut, "Variables to set, or to write into a file .env in the working directory:\n  %s\n", strings.Join(missing, "\n  "))
	}
	if c.Output == standard {
		return
	}
	switch {
	case plain > 0 && c.EnvFile == "":
		fmt.Fprintln(a.ErrOut, "--env-file .env writes those that the file has in plain.")
	case plain > 0:
		fmt.Fprintf(a.ErrOut, "%s has what was in plain (%s); a file .env in the working directory is read by the gateway itself.\n", c.EnvFile, phrase.Count(plain, "value"))
	}
	fmt.Fprintf(a.ErrOut, "Next:\n  hydrallm check %[1]s\n  CONFIG_PATH=%[1]s hydrallm\n", c.Output)
}
