//go:build unix

package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/proxy"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/machine"
	"hydrallm/shared/testkit/output"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// rig is a pool that reaches the network as it does in production, and a site on loopback that the guard makes an exception for.
type rig struct {
	*Pool

	site *http.ServeMux
	url  string
	log  *output.Buffer
}

func setup(tb testing.TB, change ...func(*Config)) *rig {
	tb.Helper()
	r := &rig{site: http.NewServeMux()}
	server := httptest.NewServer(r.site)
	tb.Cleanup(server.Close)
	r.url = server.URL
	r.Pool, r.log = startPool(tb, guard.New(guard.Config{AllowHosts: []string{"127.0.0.1", "localhost"}}), append([]func(*Config){func(cfg *Config) {
		cfg.Load, cfg.Settle = await.Limit, await.Limit
	}}, change...)...)
	var gates gates
	r.site.HandleFunc("/hold", func(_ http.ResponseWriter, q *http.Request) { gates.wait(q) })
	r.site.HandleFunc("/release", func(_ http.ResponseWriter, q *http.Request) { gates.at(q).open() })
	return r
}

// gates are what requests wait at until others come, by the query of both.
type gates struct{ sync.Map } // query -> *gate

type gate struct {
	open func()
	way  chan struct{} // closed when it is open
}

func (g *gates) at(q *http.Request) *gate {
	way := make(chan struct{})
	there, _ := g.LoadOrStore(q.URL.RawQuery, &gate{sync.OnceFunc(func() { close(way) }), way})
	return there.(*gate) //nolint:forcetypeassert // nothing else is stored
}

func (g *gates) wait(q *http.Request) {
	select {
	case <-g.at(q).way:
	case <-q.Context().Done():
	}
}

// startPool makes a pool behind a proxy of a guard. It ends before the test does.
func startPool(tb testing.TB, g *guard.Guard, change ...func(*Config)) (*Pool, *output.Buffer) {
	tb.Helper()
	path, err := find("")
	if err != nil {
		machine.Missing(tb, "Chromium", err)
	}
	said := &output.Buffer{}
	log := slog.New(slog.NewTextHandler(said, nil))
	way, err := proxy.Start(tb.Context(), g, log)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, way.Stop(context.Background())) })
	cfg := Config{Path: path, Proxy: Proxy{Addr: way.Addr()}, Check: g.Check, Log: log, Timeout: await.Limit, answer: await.Limit}
	cfg.Proxy.User, cfg.Proxy.Password = way.Credentials()
	for _, f := range change {
		f(&cfg)
	}
	pool := New(cfg)
	tb.Cleanup(func() { require.NoError(tb, pool.Stop(context.Background())) })
	return pool, said
}

// page serves HTML, and gives its address.
func (r *rig) page(path, html string) string {
	r.site.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, html)
	})
	return r.url + path
}

// saying is a page whose script calls say with its text. Until then a request of it is under way, so that it is read not before, however slow the machine.
func saying(script string) string {
	return `<p id=p></p><script>
		fetch('/hold?' + location.pathname);
		const say = text => { p.textContent = text; fetch('/release?' + location.pathname) };
	</script>` + script
}

// running gives the Chromium that runs.
func (p *Pool) running(tb testing.TB) *process {
	tb.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	require.NotNil(tb, p.current)
	<-p.current.done
	return p.current.process
}

// allClosed waits until no page is open.
func (p *Pool) allClosed(tb testing.TB) {
	tb.Helper()
	await.True(tb, func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.users == 0
	})
}

// gone waits until nothing of a Chromium is left: no process that runs, and no profile.
func gone(tb testing.TB, p *process) {
	tb.Helper()
	await.Value(tb, p.exited)
	await.True(tb, func() bool { return len(group(tb, p.cmd.Process.Pid)) == 0 }, "processes are left")
	require.NoDirExists(tb, p.profile)
}

// group gives the processes of a group that have not ended.
func group(tb testing.TB, leader int) (pids []int) {
	tb.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(tb, err)
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := bytes.Cut(stat, []byte(") "))
		fields := strings.Fields(string(rest))
		if len(fields) > 2 && fields[2] == strconv.Itoa(leader) && fields[0] != "Z" && fields[0] != "X" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			require.NoError(tb, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

//
func TestScriptsAreRun(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.site.HandleFunc("/data", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "안녕하세요 𝄞") })
	r.site.HandleFunc("/old", func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/new", http.StatusFound) })
	for name, c := range map[string]struct{ path, html, want string }{
		"fetch":    {"/fetch", saying(`<script>fetch('/data').then(r => r.text()).then(say)</script>`), `<p id="p">안녕하세요 𝄞</p>`},
		"module":   {"/module", saying(`<script type=module>say(await (await fetch('/data')).text())</script>`), `<p id="p">안녕하세요 𝄞</p>`},
		"location": {"/location", `<script>location.href = '/new'</script>`, `<p>new</p>`},
		"redirect": {"/old", "", `<p>new</p>`},
		"refresh":  {"/refresh", `<meta http-equiv=refresh content="0; url=/new">`, `<p>new</p>`},
		"names that hide members of the document": {"/named", `<form name=documentElement></form><img name=URL><p>all</p>`, `<p>all</p>`},
		"names of scripts": {"/proto", `<p>all</p><script>
			Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'forged'});
			String.prototype.slice = () => 'forged';
		</script>`, `<p>all</p>`},
		"no document": {"/none", `<script>document.documentElement.remove()</script>`, ``},
	} {
		if c.html != "" {
			r.page(c.path, c.html)
		}
		c.path = r.url + c.path
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := r.Render(t.Context(), c.path)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, page.Status)
			require.Contains(t, string(page.HTML), c.want)
			if c.want == `<p>new</p>` {
				require.Equal(t, r.url+"/new", page.URL)
			} else {
				require.Equal(t, c.path, page.URL)
			}
		})
	}
	r.page("/new", `<p>new</p>`)
}

// a page that loads itself for ever is read all the same.
func TestEndlessRefresh(t *testing.T) {
	t.Parallel()
	r := setup(t, func(cfg *Config) { cfg.Load, cfg.Settle = 2*time.Second, time.Second })
	page, err := r.Render(t.Context(), r.page("/", `<meta http-equiv=refresh content=0><p>again</p>`))
	require.NoError(t, err)
	require.Equal(t, r.url+"/", page.URL)
}

// a page that ran is lost with its browser, and the next one gets another.
func TestKilledBrowserIsReplaced(t *testing.T) {
	t.Parallel()
	r := setup(t)
	good := r.page("/good", `<p>good</p>`)
	asked := make(chan struct{})
	r.site.HandleFunc("/slow", func(_ http.ResponseWriter, q *http.Request) {
		close(asked)
		<-q.Context().Done()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := r.Render(t.Context(), r.page("/bad", `<script src=/slow></script>`))
		failed <- err
	}()
	await.Value(t, asked)
	first := r.running(t)
	require.NoError(t, syscall.Kill(first.cmd.Process.Pid, syscall.SIGKILL))
	require.Error(t, await.Value(t, failed))
	gone(t, first)

	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			page, err := r.Render(t.Context(), good)
			if err != nil || !strings.Contains(string(page.HTML), "good") {
				t.Error("no page after the restart:", err)
			}
		})
	}
	all.Wait()
	require.NotEqual(t, first.cmd.Process.Pid, r.running(t).cmd.Process.Pid)
	last := r.running(t)
	require.NoError(t, r.Stop(t.Context()))
	gone(t, last)
	require.Equal(t, 2, r.log.Count("the browser has started"), "one start at a time")
	require.Equal(t, 1, r.log.Count("the browser has died"))
}

// a browser that says nothing is killed with all its processes.
func TestHungBrowserIsKilled(t *testing.T) {
	t.Parallel()
	r := setup(t)
	good := r.page("/good", `<p>good</p>`)
	_, err := r.Render(t.Context(), good)
	require.NoError(t, err)
	r.allClosed(t)
	first := r.running(t)
	require.NoError(t, syscall.Kill(first.cmd.Process.Pid, syscall.SIGSTOP))
	r.cfg.answer = 1
	_, err = r.Render(t.Context(), good)
	require.ErrorIs(t, err, errHung)
	gone(t, first)
	r.allClosed(t)
	r.cfg.answer = await.Limit
	_, err = r.Render(t.Context(), good)
	require.NoError(t, err)
}

// a script without end costs its own page, and no other.
func TestEndlessScript(t *testing.T) {
	t.Parallel()
	r := setup(t, func(cfg *Config) { cfg.Pages = 2 })
	running := make(chan struct{})
	r.site.HandleFunc("/running", func(http.ResponseWriter, *http.Request) { close(running) })
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, err := r.Render(ctx, r.page("/endless", `<script>let x = new XMLHttpRequest(); x.open('GET', '/running', false); x.send(); for (;;);</script>`))
		failed <- err
	}()
	await.Value(t, running)
	_, err := r.Render(t.Context(), r.page("/good", `<p>good</p>`))
	require.NoError(t, err, "beside it")
	cancel()
	require.ErrorIs(t, await.Value(t, failed), context.Canceled)
	r.allClosed(t)
	_, err = r.Render(t.Context(), r.url+"/good")
	require.NoError(t, err, "after it")
	require.Equal(t, 1, r.log.Count("the browser has started"))
}

// as many pages as there are leases; the others wait, as long as they may.
func TestLeases(t *testing.T) {
	t.Parallel()
	r := setup(t, func(cfg *Config) { cfg.Pages = 1 })
	asked := make(chan struct{}, 2)
	goOn := make(chan struct{})
	r.site.HandleFunc("/slow.js", func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-goOn
	})
	slow := r.page("/slow", `<p>slow</p><script src=/slow.js></script>`)
	done := make(chan error, 1)
	go func() {
		_, err := r.Render(t.Context(), slow)
		done <- err
	}()
	await.Value(t, asked)
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() {
		_, err := r.Render(ctx, slow)
		waits <- err
	}()
	await.True(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.users == 2
	})
	cancel()
	require.ErrorIs(t, await.Value(t, waits), context.Canceled)
	close(goOn)
	require.NoError(t, await.Value(t, done))
	require.Empty(t, asked, "the second was never asked for")
}

// nobody needs it, so it ends; somebody does, so it is back.
func TestUnusedBrowserEnds(t *testing.T) {
	t.Parallel()
	r := setup(t, func(cfg *Config) { cfg.Idle = 10 * time.Millisecond })
	good := r.page("/good", `<p>good</p>`)
	for n := range 2 {
		_, err := r.Render(t.Context(), good)
		require.NoError(t, err)
		await.True(t, func() bool { return r.log.Count("the browser is not needed") == n+1 })
	}
	require.Equal(t, 2, r.log.Count("the browser has started"))
}

//
func TestWithoutBrowser(t *testing.T) {
	t.Parallel()
	dead := filepath.Join(t.TempDir(), "dead")
	require.NoError(t, os.WriteFile(dead, []byte("#!/bin/sh\necho no display >&2\nexit 1\n"), 0o700))
	for name, c := range map[string]struct {
		path, said string
		none       bool
	}{
		"none":           {filepath.Join(t.TempDir(), "chromium"), "there is no browser", true},
		"does not start": {dead, "no display", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log output.Buffer
			p := New(Config{
				Path: c.path, Log: slog.New(slog.NewTextHandler(&log, nil)), Check: func(_ context.Context, raw string) (*url.URL, error) { return url.Parse(raw) },
			})
			for range 3 {
				_, err := p.Render(t.Context(), "http://example.com/")
				require.ErrorContains(t, err, c.said)
				require.Equal(t, c.none, errors.Is(err, ErrNone))
			}
			require.Equal(t, 1, log.Count("pages are read without a browser"))
			require.NoError(t, p.Stop(t.Context()))
			_, err := p.Render(t.Context(), "http://example.com/")
			require.ErrorIs(t, err, ErrStopped)
		})
	}
}

// Stop does not wait for pages.
func TestStopEndsPages(t *testing.T) {
	t.Parallel()
	r := setup(t)
	asked := make(chan struct{})
	r.site.HandleFunc("/slow", func(_ http.ResponseWriter, q *http.Request) {
		close(asked)
		<-q.Context().Done()
	})
	failed := make(chan error, 1)
	go func() {
		_, err := r.Render(t.Context(), r.url+"/slow")
		failed <- err
	}()
	await.Value(t, asked)
	p := r.running(t)
	require.NoError(t, r.Stop(t.Context()))
	require.ErrorIs(t, await.Value(t, failed), ErrStopped)
	gone(t, p)
}
