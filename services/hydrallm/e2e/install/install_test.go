//go:build e2e

package install

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
)

const (
	root      = "../../../.."
	debian    = "debian:bookworm-slim"
	golang    = "golang:1.26-bookworm"
	stepLimit = time.Hour // of a way: one of them compiles everything
)

// way is one to install the gateway. Its steps are the commands that somebody types who has what it needs, and its files on the machine; the request is one more.
type way struct {
	name, needs string
	steps       []string
	serve       string // the last of them, which runs until it is stopped
	image       string // of the clean machine; "" is this one
	mounts      []string
	env         []string
	stop        string // run on this machine when it is over
}

// each way leads from a clean machine to a streamed answer of the demo.
func TestInstalls(t *testing.T) {
	requireEngine(t)
	dist := release(t)
	arch := runtime.GOARCH
	ways := []way{
		{
			name: "archive", image: debian,
			steps: []string{"tar xzf /dist/hydrallm_dev_linux_" + arch + ".tar.gz", "cd hydrallm_dev_linux_" + arch},
			serve: "./hydrallm demo",
		},
		{name: "Debian package", image: debian, steps: []string{"dpkg --install /dist/hydrallm_*_" + arch + ".deb"}, serve: "hydrallm demo"},
		{
			name: "image", needs: "Docker", steps: []string{"docker load --quiet --input " + dist + "/hydrallm_dev_linux_" + arch + "_image.tar"},
			serve: "docker run --rm --network host --read-only --tmpfs /tmp --name hydrallm-install-image hydrallm/hydrallm:dev demo",
			stop:  "docker rm --force hydrallm-install-image; docker image rm hydrallm/hydrallm:dev",
		},
	}
	ways = append(ways, npmWays(t, dist)...)
	if !testing.Short() {
		ways = append(ways, sourceWays(t)...)
	}
	var table strings.Builder
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			took := w.run(t)
			fmt.Fprintf(&table, "| %s | %s | %d | %s |\n", w.name, w.needs, len(w.steps)+2, took.Round(100*time.Millisecond))
		})
	}
	t.Logf("to the first streamed answer:\n| way | needs | steps | time |\n|---|---|---|---|\n%s", table.String())
}

// npmWays need Node, which a clean machine gets from this one where it runs there.
func npmWays(t *testing.T, dist string) []way {
	t.Helper()
	if _, err := exec.LookPath("npx"); err != nil {
		t.Run("npm", func(t *testing.T) { machine.Missing(t, "npm", err) })
		return nil
	}
	url := registry(t, filepath.Join(dist, "npm"))
	w := way{needs: "Node", env: []string{"npm_config_registry=" + url, "npm_config_update_notifier=false"}}
	mounts := []string{"/usr/bin/node:/usr/bin/node:ro", "/usr/lib/node_modules:/usr/lib/node_modules:ro"}
	probe := []string{"run", "--rm"}
	for _, m := range mounts {
		probe = append(probe, "--volume", m)
	}
	const npx = "node /usr/lib/node_modules/npm/bin/npx-cli.js"
	if exec.CommandContext(t.Context(), "docker", append(probe, debian, "sh", "-c", npx+" --version")...).Run() == nil {
		w.image, w.mounts = debian, mounts
		w.env = append(w.env, "npm_config_prefix=/usr/local")
		one, two := w, w
		one.name, one.serve = "npx", npx+" --yes hydrallm demo"
		two.name, two.steps, two.serve = "npm", []string{"node /usr/lib/node_modules/npm/bin/npm-cli.js install --silent --global hydrallm"}, "hydrallm demo"
		return []way{one, two}
	}
	cache, prefix := t.TempDir(), t.TempDir()
	w.env = append(w.env, "npm_config_cache="+cache, "npm_config_prefix="+prefix)
	one, two := w, w
	one.name, one.serve = "npx (on this machine)", "npx --yes hydrallm demo"
	two.name, two.steps, two.serve = "npm (on this machine)", []string{"npm install --silent --global hydrallm"}, prefix+"/bin/hydrallm demo"
	return []way{one, two}
}

// sourceWays build everything.
func sourceWays(t *testing.T) []way {
	t.Helper()
	dir := t.TempDir()
	environment := []string{"GOFLAGS=-buildvcs=false"}
	for _, name := range []string{"GOPROXY", "GOSUMDB"} {
		value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
		require.NoError(t, err)
		environment = append(environment, name+"="+strings.TrimSpace(string(value)))
	}
	top, err := filepath.Abs(root)
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), "git", "clone", "--quiet", top, dir+"/hydrallm").CombinedOutput()
	require.NoError(t, err, string(out))
	_, port, _ := strings.Cut(freeport.Addr(t), ":")
	compose := "docker compose"
	if exec.CommandContext(t.Context(), "docker", "compose", "version").Run() != nil {
		compose = "docker-compose"
	}
	compose += " --project-name hydrallm-install --profile demo"
	at := "cd " + dir + "/hydrallm && "
	return []way{
		{
			name: "clone", needs: "Go, make", image: golang, env: environment, mounts: []string{dir + "/hydrallm:/clone:ro", "/usr/bin/make:/usr/bin/make:ro"},
			steps: []string{"cp -r /clone hydrallm", "cd hydrallm"}, serve: "make run",
		},
		{
			name: "compose", needs: "Docker", env: append(environment, "HYDRALLM_PORT="+port),
			steps: []string{"cd " + dir + "/hydrallm"},
			serve: at + compose + " up --build --detach && echo http://127.0.0.1:" + port + "/v1/chat/completions",
			stop:  at + compose + " down --volumes --remove-orphans",
		},
	}
}

// run goes the way and gives the time to the first piece of an answer.
func (w way) run(t *testing.T) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	shell := func(command string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, "sh", "-c", command)
		cmd.Env = append(os.Environ(), w.env...)
		return cmd
	}
	if w.image != "" {
		id := container(t, w)
		shell = func(command string) *exec.Cmd {
			return exec.CommandContext(ctx, "docker", "exec", id, "sh", "-c", command)
		}
	}
	if w.stop != "" {
		t.Cleanup(func() { _ = exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", w.stop).Run() })
	}
	start := time.Now()
	var before string // commands that only count in the shell that runs them
	for _, step := range w.steps {
		if strings.HasPrefix(step, "cd ") {
			before = step + " && "
			continue
		}
		out, err := shell(step).CombinedOutput()
		require.NoError(t, err, "%s\n%s", step, out)
	}
	url := serving(t, shell(before+w.serve))
	ask(ctx, t, url, "demo")
	return time.Since(start)
}

// container starts a clean machine that ends with the test.
func container(t *testing.T, w way) string {
	t.Helper()
	args := []string{"run", "--detach", "--rm", "--network", "host", "--workdir", "/root", "--volume", release(t) + ":/dist:ro"}
	for _, m := range w.mounts {
		args = append(args, "--volume", m)
	}
	for _, e := range w.env {
		args = append(args, "--env", e)
	}
	return run(t, append(args, w.image, "sleep", "infinity")...)
}

// run starts a container, with arguments of docker, that ends with the test.
func run(t *testing.T, args ...string) (id string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	require.NoError(t, err, string(out))
	lines := strings.Fields(string(out))
	id = lines[len(lines)-1]
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "docker", "rm", "--force", "--volumes", id).Run()
	})
	return id
}

// shellIn gives what runs a command in a container, says what it printed, and fails the test with it.
func shellIn(t *testing.T, id string) func(command string) string {
	t.Helper()
	return func(command string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "docker", "exec", id, "sh", "-c", command).CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
		return string(out)
	}
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+/v1/chat/completions`)

// serving runs a command until it says where it serves. It ends with what runs it.
func serving(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	cmd.WaitDelay = time.Second                           // what it has started may hold its output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // and ends with it
	require.NoError(t, cmd.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		in.CloseWithError(cmd.Wait())
	}()
	var said bytes.Buffer
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if url := address.FindString(lines.Text()); url != "" {
			go func() { _, _ = io.Copy(io.Discard, out) }() // until the command ends
			t.Cleanup(func() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				<-done
			})
			return url
		}
	}
	t.Fatalf("%s: %v\n%s", cmd, lines.Err(), said.String())
	return ""
}

// ask asks until there is a stream, and reads its first piece.
func ask(ctx context.Context, t *testing.T, url, model string) {
	t.Helper()
	body := `{"model": "` + model + `", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err == nil && resp.StatusCode == http.StatusOK {
			defer resp.Body.Close() //nolint:errcheck // it was read
			for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
				if strings.Contains(lines.Text(), `"content":"`) && !strings.Contains(lines.Text(), `"content":""`) {
					return
				}
			}
			t.Fatal("a stream without content")
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s never answered: %v", url, err)
		case <-ticker.C:
		}
	}
}

var made string // the directory of the release that was made here

func TestMain(m *testing.M) {
	code := m.Run()
	if made != "" {
		_ = os.RemoveAll(made)
	}
	os.Exit(code)
}

// release makes one for this machine, which all tests share, or takes the one that HYDRALLM_DIST names.
func release(t *testing.T) string {
	t.Helper()
	if dist := os.Getenv("HYDRALLM_DIST"); dist != "" {
		return dist
	}
	dist, err := makeRelease()
	require.NoError(t, err)
	return dist
}

var makeRelease = sync.OnceValues(func() (string, error) {
	var err error
	if made, err = os.MkdirTemp("", "hydrallm-release"); err != nil {
		return "", err
	}
	dist := filepath.Join(made, "dist")
	cmd := exec.Command("go", "run", ".", "dev", dist, "linux/"+runtime.GOARCH)
	cmd.Dir = root + "/deploy/tools/release"
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("making a release: %w\n%s", err, out)
	}
	return dist, nil
})

func requireEngine(t *testing.T) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput(); err != nil {
		machine.Missing(t, "Docker engine", fmt.Errorf("%w\n%s", err, out))
	}
}

// the image of a release keeps its data in a volume, and Docker finds it healthy by the check that it brings along, with nothing but the key of a provider.
func TestImageHealth(t *testing.T) {
	requireEngine(t)
	load := exec.CommandContext(t.Context(), "docker", "load", "--input", release(t)+"/hydrallm_dev_linux_"+runtime.GOARCH+"_image.tar")
	out, err := load.CombinedOutput()
	require.NoError(t, err, string(out))
	const volume = "hydrallm-install-image"
	t.Cleanup(func() {
		_ = exec.CommandContext(context.WithoutCancel(t.Context()), "sh", "-c", "docker volume rm "+volume+"; docker image rm hydrallm/hydrallm:dev").Run()
	})
	addr := freeport.Addr(t)
	id := run(t, "run", "--detach", "--read-only", "--tmpfs", "/tmp", "--volume", volume+":/data", "--env", "GEMINI_API_KEY=secret", "--publish", addr+":8000", "hydrallm/hydrallm:dev")
	ctx, cancel := context.WithTimeout(t.Context(), stepLimit)
	defer cancel()
	out, err = exec.CommandContext(ctx, "sh", "-c", `until s=$(docker inspect --format "{{.State.Status}} {{.State.Health.Status}}" `+id+`) && [ "$s" = "running healthy" ]; do
	case $s in running*) sleep 1;; *) docker logs `+id+`; exit 1;; esac
done`).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Empty(t, get(ctx, http.DefaultClient, "http://"+addr+"/v1/models"))
}

// what Debian's package installs runs as its unit says: as a user without rights, with the configuration of /etc and its data in /var/lib; an upgrade keeps a configuration
// that was changed, and a purge leaves nothing.
func TestDebianUnit(t *testing.T) {
	requireEngine(t)
	deb := "/dist/hydrallm_*_" + runtime.GOARCH + ".deb"
	id := container(t, way{image: debian})
	sh := shellIn(t, id)
	sh("dpkg --install " + deb)
	unit := sh("cat /usr/lib/systemd/system/hydrallm.service")
	setting := func(name string) string {
		m := regexp.MustCompile(`(?m)^` + name + `=(.*)$`).FindStringSubmatch(unit)
		require.NotNil(t, m, name)
		return m[1]
	}
	require.Equal(t, "hydrallm", setting("StateDirectory"))
	mock, gateway := freeport.Addr(t), freeport.Addr(t)
	_, port, _ := strings.Cut(gateway, ":")
	config := fmt.Sprintf(`server: {host: 127.0.0.1, port: %s}
providers: [{id: mock, url: "http://%s/v1", key: "${MOCK_KEY}"}]
upstreams: [{id: answers, provider: mock, model: mock}]
models: [{name: demo, upstreams: [answers]}]
`, port, mock)
	sh("cat > /etc/hydrallm/config.yaml <<'END'\n" + config + "END\necho MOCK_KEY=secret >> /etc/hydrallm/environment; install -d -o 65534 -m 0700 /var/lib/hydrallm")
	// What systemd does with the unit, as far as a container without it can.
	as := func(command string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "docker", "exec", "--user", "65534:65534", "--workdir", setting("WorkingDirectory"), id, "env", "MOCK_KEY=secret", "sh", "-c",
			"umask "+setting("UMask")+" && export "+setting("Environment")+" && exec "+command)
	}
	check, err := as(setting("ExecStartPre")).CombinedOutput()
	require.NoError(t, err, string(check))
	require.Contains(t, string(check), "is valid: 1 provider")
	start := func(cmd *exec.Cmd) {
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	start(as("/usr/bin/hydrallm mock --listen " + mock))
	start(as(setting("ExecStart")))
	ask(t.Context(), t, "http://"+gateway+"/v1/chat/completions", "demo")
	require.Contains(t, sh("ls /var/lib/hydrallm"), "hydrallm.db")
	sh("dpkg --install " + deb)
	require.Equal(t, config, sh("cat /etc/hydrallm/config.yaml"))
	sh("dpkg --remove hydrallm && test -e /etc/hydrallm/config.yaml && dpkg --purge hydrallm && test ! -e /etc/hydrallm && test ! -e /var/lib/hydrallm && test ! -e /usr/bin/hydrallm")
}
