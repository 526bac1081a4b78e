// Package install has package managers install what tests need from a registry, once on a machine, into the user's cache directory.
package install

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"hydrallm/shared/testkit/machine"
)

const (
	installLimit = 10 * time.Minute // once on a machine: it is kept in the user's cache
	downloads    = 3                // how often a registry is asked: they have bad moments
)

// Packages are what a package manager installs after a lock file. It is made by NPM and PIP and may be used by several tests at once.
type Packages struct {
	manager string
	files   []string // of which the first is the lock
	// command installs into a directory that has the files.
	command func(ctx context.Context, dir string) *exec.Cmd
	once    func() (string, error)
}

// NPM is what the package-lock.json and package.json of a directory ask for. No script of a package runs.
func NPM(dir string) *Packages {
	return newPackages("npm", []string{filepath.Join(dir, "package-lock.json"), filepath.Join(dir, "package.json")}, func(ctx context.Context, dir string) *exec.Cmd {
		return exec.CommandContext(ctx, "npm", "ci", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts")
	})
}

// PIP is what the requirements.txt of a directory asks for.
func PIP(dir string) *Packages {
	return newPackages("pip", []string{filepath.Join(dir, "requirements.txt")}, func(ctx context.Context, dir string) *exec.Cmd {
		return exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", dir,
			"--requirement", filepath.Join(dir, "requirements.txt"))
	})
}

func newPackages(manager string, files []string, command func(ctx context.Context, dir string) *exec.Cmd) *Packages {
	p := &Packages{manager: manager, files: files, command: command}
	p.once = sync.OnceValues(p.install)
	return p
}

// Dir gives the directory with the packages, or ends a test that can't have them.
func (p *Packages) Dir(tb testing.TB) string {
	tb.Helper()
	dir, err := p.once()
	if err != nil {
		machine.Missing(tb, "packages of "+p.manager, err)
	}
	return dir
}

// Prepare installs them if they are not there. Whoever needs the directory gets the error.
func (p *Packages) Prepare() { _, _ = p.once() }

// install gives a directory of the user's cache with the packages. It is named after the lock file and whoever runs the packages.
func (p *Packages) install() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	lock, err := os.ReadFile(p.files[0])
	if err != nil {
		return "", err
	}
	python, _ := exec.CommandContext(ctx, "python3", "--version").Output() // without one, pip says so
	sum := sha256.Sum256(append(lock, python...))
	base := filepath.Join(cache, "hydrallm-test")
	dir := filepath.Join(base, "clients-"+p.manager+"-"+runtime.GOARCH+"-"+hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	for range downloads {
		if err = p.installAt(ctx, base, dir); err == nil {
			return dir, nil
		}
	}
	return "", err
}

// installAt installs into a new directory, which becomes dir when everything is there.
func (p *Packages) installAt(ctx context.Context, base, dir string) error {
	fresh, err := os.MkdirTemp(base, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // what stays is in a cache
	for _, file := range p.files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(fresh, filepath.Base(file)), data, 0o600); err != nil {
			return err
		}
	}
	if out, err := p.command(ctx, fresh).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.manager, err, lastLines(out))
	}
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return nil
}

// lastLines gives the end of what a program printed.
func lastLines(out []byte) string {
	lines := strings.Split(string(bytes.TrimSpace(out)), "\n")
	return strings.Join(lines[max(len(lines)-5, 0):], "\n")
}
