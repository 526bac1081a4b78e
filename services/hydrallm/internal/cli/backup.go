package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"

	"hydrallm/services/hydrallm/internal/backup"
	"hydrallm/services/hydrallm/internal/newfile"
	sessionwriter "hydrallm/services/session-writer"
	"hydrallm/shared/process"
)

type backupCmd struct {
	File   string `arg:"" help:"The file to write, which must not be there yet; - for the standard output."`
	Config string `placeholder:"FILE" help:"The configuration, instead of the one that the gateway would use."`
	URL    string `name:"url" placeholder:"URL" help:"The running gateway; without it the configured address, and the data themselves when nobody listens there."`
}

// Run writes a backup, and reads it while it does.
func (c backupCmd) Run(a *App) error {
	settings, err := loadFor(a, c.Config)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error { return c.write(a, settings, w) }
	if c.File == "-" {
		made, err := checked(a.Out, write)
		if err != nil {
			return err
		}
		return told(a.ErrOut, made)
	}
	file, err := newfile.Create(c.File, secretMode, false)
	if err != nil {
		return err
	}
	made, err := checked(file, write)
	if err != nil {
		return errors.Join(err, file.Discard()) // a part of a backup is of no use
	}
	if err := file.Commit(); err != nil {
		return err
	}
	return told(a.Out, made)
}

// told says which backup was made.
func told(w io.Writer, made sessionwriter.Backup) error {
	_, err := fmt.Fprintf(w, "backup of %s by version %s, schema %d. Added keys in it are encrypted under the admin key of now; conversations are not encrypted.\n",
		made.Time.Format("2006-01-02 15:04:05 UTC"), made.Version, made.Schema)
	return err
}

// loadFor reads the configuration of a gateway whose data are wanted, and says what is odd about where they are.
func loadFor(a *App, file string) (process.Settings, error) {
	env := a.Env
	if file != "" {
		env.File = file
	}
	settings, err := process.LoadFrom(env, process.Overrides{})
	for _, w := range settings.Warnings {
		fmt.Fprintf(a.ErrOut, "warning: %s\n", w)
	}
	return settings, err
}

// checked has write write to out, and reads what it writes.
func checked(out io.Writer, write func(io.Writer) error) (sessionwriter.Backup, error) {
	r, w := io.Pipe()
	done := make(chan result, 1)
	go func() {
		made, err := sessionwriter.CheckBackup(r)
		_ = r.CloseWithError(errors.Join(err, io.ErrClosedPipe)) // never fails
		done <- result{made, err}
	}()
	err := write(io.MultiWriter(out, w))
	_ = w.CloseWithError(err) // never fails
	res := <-done
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		return res.backup, err
	}
	return res.backup, res.err
}

type result struct {
	backup sessionwriter.Backup
	err    error
}

// write gets the backup from the running gateway, or from the data.
func (c backupCmd) write(a *App, settings process.Settings, w io.Writer) error {
	url := c.URL
	if url == "" {
		url = settings.Server.URL()
	}
	err := download(a.Ctx, strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/v1"), settings, w)
	if dial, ok := errors.AsType[*net.OpError](err); !ok || dial.Op != "dial" || c.URL != "" {
		return err
	}
	log := slog.New(slog.NewTextHandler(a.ErrOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if stopped := backup.Make(a.Ctx, settings, log, w); stopped != nil {
		if errors.Is(stopped, backup.ErrRunning) {
			return fmt.Errorf("the gateway runs and does not answer at %s (name its address with --url): %w", url, err)
		}
		return stopped
	}
	return nil
}

func download(ctx context.Context, url string, settings process.Settings, w io.Writer) error {
	client, err := adminClient(settings.Server)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/v1/admin/backup", http.NoBody)
	if err != nil {
		return err
	}
	req.Header.Set("X-Admin-Key", settings.Server.AdminKey.Reveal())
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the gateway: %w", err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 4096)) // it says more or nothing
		return fmt.Errorf("the gateway answers with status %d: %s", resp.StatusCode, strings.TrimSpace(string(text)))
	}
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("fetching the backup: %w", err)
	}
	return nil
}

type restoreCmd struct {
	File   string `arg:"" help:"A file that hydrallm backup has written."`
	Force  bool   `help:"Replace data that are there. Files are moved aside, not removed."`
	Config string `placeholder:"FILE" help:"The configuration, instead of the one that the gateway would use."`
}

// Run puts a backup back.
func (c restoreCmd) Run(a *App) error {
	settings, err := loadFor(a, c.Config)
	if err != nil {
		return err
	}
	if old := settings.OldPlaces; len(old) > 0 { // what is meant is not sure enough to replace data
		return fmt.Errorf("data of an older version are in %s, and not where DATA_DIR or the configuration says: move them first, or name the place in sessions.database and nats.store_dir",
			strings.Join(old, " and "))
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	log := slog.New(slog.NewTextHandler(a.ErrOut, &slog.HandlerOptions{Level: slog.LevelWarn}))
	done, err := backup.Restore(a.Ctx, settings, file, c.Force, log)
	for _, path := range done.Aside {
		fmt.Fprintf(a.Out, "what was there before is now %s\n", path)
	}
	if errors.Is(err, sessionwriter.ErrNotEmpty) {
		return fmt.Errorf("%w: nothing was changed; --force replaces it", err)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "restored the backup of %s by version %s. Start the gateway with the admin key of that time, as admin_key or admin_key_previous.\n",
		done.Backup.Time.Format("2006-01-02 15:04:05 UTC"), done.Backup.Version)
	return err
}
