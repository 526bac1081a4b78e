//go:build e2e

package clients

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

// packages are what a package manager installs after a lock file.
type packages struct {
	name string
	lock []string // files, of which the first is the lock
	// command installs into a directory that has the files.
	command func(ctx context.Context, dir string) *exec.Cmd
}

var npm = packages{
	name: "npm", lock: []string{"node/package-lock.json", "node/package.json"},
	command: func(ctx context.Context, dir string) *exec.Cmd {
		return exec.CommandContext(ctx, "npm", "ci", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts")
	},
}

var pip = packages{
	name: "pip", lock: []string{"python/requirements.txt"},
	command: func(ctx context.Context, dir string) *exec.Cmd {
		return exec.CommandContext(ctx, "python3", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", dir,
			"--requirement", filepath.Join(dir, "requirements.txt"))
	},
}

var (
	npmOnce = sync.OnceValues(npm.install)
	pipOnce = sync.OnceValues(pip.install)
)

// installed gives the directory of what once installs, or ends a test that can't have it.
func installed(t *testing.T, name string, once func() (string, error)) string {
	t.Helper()
	dir, err := once()
	if err != nil {
		machine.Missing(t, "packages of "+name, err)
	}
	return dir
}

// install gives a directory of the user's cache with the packages. It is named after the lock file and whoever runs the packages.
func (p packages) install() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	lock, err := os.ReadFile(p.lock[0])
	if err != nil {
		return "", err
	}
	python, _ := exec.CommandContext(ctx, "python3", "--version").Output() // without one, pip says so
	sum := sha256.Sum256(append(lock, python...))
	base := filepath.Join(cache, "hydrallm-test")
	dir := filepath.Join(base, "clients-"+p.name+"-"+runtime.GOARCH+"-"+hex.EncodeToString(sum[:8]))
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
func (p packages) installAt(ctx context.Context, base, dir string) error {
	fresh, err := os.MkdirTemp(base, "new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // what stays is in a cache
	for _, file := range p.lock {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(fresh, filepath.Base(file)), data, 0o600); err != nil {
			return err
		}
	}
	if out, err := p.command(ctx, fresh).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", p.name, err, lastLines(out))
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
