package pgtest

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const superuser = "hydra"

// Settings of a server whose data nobody needs after the tests.
var settings = []string{
	"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200", "shared_buffers=32MB",
	"listen_addresses=127.0.0.1", "unix_socket_directories=", "autovacuum=off",
}

// localBinaries finds the directory that holds initdb and postgres.
func localBinaries() (string, error) {
	candidates, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		candidates = append(candidates, filepath.Dir(path))
	}
	for _, dir := range slices.Backward(candidates) { // the newest version comes last
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("initdb is neither in PATH nor under /usr/lib/postgresql")
}

// startLocal runs a server on a new data directory and a free loopback port.
func startLocal(bin string) (*server, error) {
	dir, password, err := newData(bin)
	if err != nil {
		return nil, err
	}
	return run(bin, dir, password)
}

// newData makes the directory of a server.
func newData(bin string) (dir, password string, err error) {
	if dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return "", "", err
	}
	password = rand.Text()
	if err = giveToServerUser(dir); err == nil {
		err = initDB(bin, dir, password)
	}
	if err != nil {
		return "", "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, password, nil
}

func initDB(bin, dir, password string) error {
	pwfile := filepath.Join(dir, "password")
	if err := os.WriteFile(pwfile, []byte(password), 0o644); err != nil { // in a directory of mode 0700
		return err
	}
	cmd := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", filepath.Join(dir, "data"), "--username", superuser, "--pwfile", pwfile,
		"--auth", "password", "--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	asServerUser(cmd)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running initdb: %w: %s", err, out)
	}
	return nil
}

// guard runs the server until its own standard input closes, so that the server also ends when the test process is killed. Unless it is told to keep them, the
// files go with it.
const guard = `trap '' INT TERM HUP
dir=$1; shift
{ "$@" </dev/null >>"$dir/log" 2>&1; : >"$dir/ended"; } &
read -r keep
until [ -e "$dir/ended" ] || { pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null; }; do sleep 1; done
wait
[ "$keep" = keep ] || rm -rf "$dir"`

func run(bin, dir, password string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	stop, err := serve(bin, dir, port, settings)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	admin := &url.URL{
		Scheme: "postgres", User: url.UserPassword(superuser, password), Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)),
		Path: "/postgres", RawQuery: "sslmode=disable",
	}
	return &server{admin: admin, stop: func() error { return errors.Join(stop(false), os.RemoveAll(dir)) }}, nil
}

// serve runs a server on a directory until stop.
func serve(bin, dir string, port int, settings []string) (stop func(keep bool) error, err error) {
	for _, old := range []string{filepath.Join(dir, "ended"), filepath.Join(dir, "data", "postmaster.pid")} { // of the last run
		if err := os.Remove(old); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	args := []string{"-c", guard, "pgtest", dir, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(port)}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	cmd := exec.Command("/bin/sh", args...)
	asServerUser(cmd)
	cmd.Dir = "/"
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting postgres: %w", err)
	}
	stop = func(keep bool) (err error) {
		if keep {
			_, err = io.WriteString(in, "keep\n")
		}
		return errors.Join(err, in.Close(), cmd.Wait())
	}
	if err := awaitReady(dir); err != nil {
		return nil, errors.Join(err, stop(false))
	}
	return stop, nil
}

// awaitReady polls the server's status file, which is ours for certain, as a port might not be; a process outside gives no event to wait for.
func awaitReady(dir string) error {
	deadline := time.Now().Add(setupWait)
	for time.Now().Before(deadline) {
		status, _ := os.ReadFile(filepath.Join(dir, "data", "postmaster.pid"))
		if bytes.Contains(status, []byte("\nready")) {
			return nil
		}
		if _, err := os.Stat(filepath.Join(dir, "ended")); err == nil {
			break
		}
		<-time.After(20 * time.Millisecond)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	return errors.Join(fmt.Errorf("postgres did not get ready: %s", log), err)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}
