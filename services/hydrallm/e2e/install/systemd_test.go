//go:build e2e

package install

import (
	"context"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

const (
	systemdImage = "hydrallm-install-systemd"
	systemdFile  = "FROM " + debian + `
RUN apt-get update && apt-get install --yes --no-install-recommends systemd && rm -rf /var/lib/apt/lists/*
STOPSIGNAL SIGRTMIN+3
CMD ["/lib/systemd/systemd"]
`
)

// Users that systemd makes for a service have these numbers (https://systemd.io/UIDS-GIDS/).
const firstDynamicUser, lastDynamicUser = 61184, 65519

// a systemd that runs starts what the package installs, as a user of its own; keeps it from starting with a configuration that has mistakes; reads a new one; holds
// the port while it is restarted, so that no client is refused; and has nothing of it any more when the package is purged.
func TestSystemd(t *testing.T) {
	if testing.Short() {
		t.Skip("a systemd in a container wants rights and control groups that not every engine gives; make installs has it")
	}
	requireEngine(t)
	id := systemd(t)
	sh := shellIn(t, id)
	fails := func(command string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "docker", "exec", id, "sh", "-c", command).CombinedOutput()
		require.Error(t, err, "%s\n%s", command, out)
	}
	deb := "dpkg --install /dist/hydrallm_*_" + runtime.GOARCH + ".deb"
	sh(deb)
	sh("systemctl is-enabled hydrallm && systemctl is-active hydrallm && systemctl is-active systemd-journald")

	const config = `server: {host: 0.0.0.0, port: 8100}
providers: [{id: mock, url: "http://127.0.0.1:9999/v1", key: "${MOCK_KEY}"}]
upstreams: [{id: answers, provider: mock, model: mock}]
`
	write := func(models string) {
		sh("cat > /etc/hydrallm/config.yaml <<'END'\n" + config + "models: [" + models + "\nEND")
	}
	const before = "{name: before, upstreams: [answers]}]"
	sh("systemd-run --quiet --unit mock hydrallm mock --listen 127.0.0.1:9999 && echo MOCK_KEY=secret >> /etc/hydrallm/environment")
	write(before)
	sh("systemctl restart hydrallm")
	base := "http://" + strings.TrimSpace(sh("hostname -I")) + ":8100"
	ask(t.Context(), t, base+"/v1/chat/completions", "before")

	status := sh("cat /proc/$(systemctl show --property MainPID --value hydrallm)/status")
	user, err := strconv.Atoi(regexp.MustCompile(`(?m)^Uid:\t(\d+)\t`).FindStringSubmatch(status)[1])
	require.NoError(t, err)
	require.True(t, firstDynamicUser <= user && user <= lastDynamicUser, user)
	require.Regexp(t, `(?m)^CapEff:\t0+$`, status)
	require.Equal(t, strconv.Itoa(user)+" 700\n", sh("stat --format '%u %a' /var/lib/private/hydrallm"))

	write("{name: after, upstreams: [answers]}]")
	sh("systemctl reload hydrallm")
	ask(t.Context(), t, base+"/v1/chat/completions", "after")
	write("")
	fails("systemctl restart hydrallm")
	require.Contains(t, sh("journalctl --unit hydrallm"), "broken YAML")
	write(before)
	sh("systemctl stop hydrallm && systemctl enable --now hydrallm.socket && systemctl start hydrallm")
	ask(t.Context(), t, base+"/v1/chat/completions", "before")

	clients := connect(t, base+"/v1/models")
	for range 3 {
		clients.more(t)
		sh("systemctl restart hydrallm")
	}
	sh(deb + " && systemctl is-active hydrallm hydrallm.socket") // an upgrade
	clients.more(t)
	clients.stop()

	sh("dpkg --purge hydrallm && test ! -e /etc/hydrallm && test ! -e /var/lib/private/hydrallm")
	fails("systemctl is-active hydrallm")
	fails("systemctl is-active hydrallm.socket")
	require.Empty(t, sh("find /etc/systemd -name 'hydrallm*'"))
	require.Empty(t, sh("systemctl --failed --no-legend --plain"))
}

// systemd starts a container with systemd as its first process, and waits until that has started.
func systemd(t *testing.T) (id string) {
	t.Helper()
	dist := release(t)
	build := exec.CommandContext(t.Context(), "docker", "build", "--network", "host", "--tag", systemdImage, "-")
	build.Env = append(build.Environ(), "DOCKER_BUILDKIT=0") // which knows the images that the engine has
	build.Stdin = strings.NewReader(systemdFile)
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	args := []string{"run", "--detach", "--cgroupns", "host", "--volume", "/sys/fs/cgroup:/sys/fs/cgroup", "--volume", dist + ":/dist:ro"}
	for _, dir := range []string{"/run", "/run/lock", "/tmp"} {
		args = append(args, "--tmpfs", dir)
	}
	// What --privileged gives, but for what an engine without all capabilities of its machine can't give.
	for _, c := range []string{"SYS_ADMIN", "SYS_PTRACE", "SYSLOG", "AUDIT_CONTROL", "AUDIT_READ", "MAC_OVERRIDE", "DAC_READ_SEARCH"} {
		args = append(args, "--cap-add", c)
	}
	for _, o := range []string{"seccomp=unconfined", "apparmor=unconfined", "systempaths=unconfined"} {
		args = append(args, "--security-opt", o)
	}
	id = run(t, append(args, systemdImage)...)
	// The state of a system some of whose units have failed is an error of the command.
	out, _ = exec.CommandContext(t.Context(), "docker", "exec", id, "sh", "-c", "until [ -S /run/systemd/private ]; do sleep 0.1; done; systemctl is-system-running --wait").CombinedOutput()
	require.Equal(t, "running\n", string(out))
	return id
}

// clients are some that connect again and again.
type clients struct {
	cancel  context.CancelFunc
	done    sync.WaitGroup
	answers atomic.Int64
	failed  atomic.Pointer[string] // how the first request that had no answer ended
}

// connect starts clients, each with a connection of its own for each request.
func connect(t *testing.T, url string) *clients {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := &clients{cancel: cancel}
	t.Cleanup(c.stop)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for range 4 {
		c.done.Go(func() {
			for ctx.Err() == nil {
				if why := get(ctx, client, url); why == "" {
					c.answers.Add(1)
				} else if ctx.Err() == nil {
					c.failed.CompareAndSwap(nil, &why)
				}
			}
		})
	}
	return c
}

// get gives how a request ended that was not answered.
func get(ctx context.Context, client *http.Client, url string) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.Status
	}
	return ""
}

// more waits for more answers, and fails when a client had none.
func (c *clients) more(t *testing.T) {
	t.Helper()
	enough := c.answers.Load() + 20
	await.True(t, func() bool {
		if why := c.failed.Load(); why != nil {
			t.Fatal(*why)
		}
		return c.answers.Load() >= enough
	}, "answers")
}

func (c *clients) stop() {
	c.cancel()
	c.done.Wait()
}
