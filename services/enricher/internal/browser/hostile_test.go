//go:build unix

package browser

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/guardtest"
)

// no arrangement of pages and names leads the browser inside, nor does what it answers hold anything from there.
func TestHostileSetups(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	pool, _ := startPool(t, w.Guard())
	for _, address := range w.Addresses() {
		_, err := pool.Render(t.Context(), address)
		require.ErrorIs(t, err, guard.ErrBlocked, address)
	}
	var read atomic.Int32
	each(t, guardtest.Setups(), func(s guardtest.Setup) error {
		page, err := pool.Render(t.Context(), s.Start(w))
		switch {
		case err != nil:
			return nil //nolint:nilerr // refusing is what it should do
		case strings.Contains(string(page.HTML), guardtest.TrapText) || !strings.Contains(string(page.HTML), guardtest.PageText):
			return fmt.Errorf("has another text: %s", page.HTML)
		}
		read.Add(1)
		return nil
	})
	require.NotZero(t, read.Load())
	pool.allClosed(t)
	require.NoError(t, pool.Stop(t.Context()))
	require.Empty(t, w.Reached())
}

// the proxy alone is enough. Here addresses of documents are not checked.
func TestProxyAloneIsEnough(t *testing.T) {
	t.Parallel()
	w := guardtest.New(t)
	pool, _ := startPool(t, w.Guard(), func(cfg *Config) {
		cfg.Check = func(_ context.Context, raw string) (*url.URL, error) { return url.Parse(raw) }
	})
	var documents []guardtest.Setup
	for _, s := range guardtest.Setups() {
		if !s.Readable || strings.Contains(s.Name, "navigation") || strings.Contains(s.Name, "frame") || strings.Contains(s.Name, "form") {
			documents = append(documents, s)
		}
	}
	each(t, documents, func(s guardtest.Setup) error {
		page, err := pool.Render(t.Context(), s.Start(w))
		if err == nil && strings.Contains(string(page.HTML), guardtest.TrapText) {
			return fmt.Errorf("has the text of a trap: %s", page.HTML)
		}
		return nil
	})
	require.NoError(t, pool.Stop(t.Context()))
	require.Empty(t, w.Reached())
}

// each tries set-ups, as many at once as there are pages.
func each(t *testing.T, setups []guardtest.Setup, try func(guardtest.Setup) error) {
	t.Helper()
	var mu sync.Mutex // of try's results
	var all sync.WaitGroup
	next := make(chan guardtest.Setup)
	for range 4 {
		all.Go(func() {
			for s := range next {
				if err := try(s); err != nil {
					mu.Lock()
					t.Errorf("%s: %v", s.Name, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, s := range setups {
		next <- s
	}
	close(next)
	all.Wait()
}

// datagrams know no proxy.
func TestNoDatagrams(t *testing.T) {
	t.Parallel()
	r := setup(t)
	trap, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	require.NoError(t, err)
	got := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		if _, _, err := trap.ReadFrom(make([]byte, 1500)); err == nil {
			close(got)
		}
	})
	_, port, err := net.SplitHostPort(trap.LocalAddr().String())
	require.NoError(t, err)
	page, err := r.Render(t.Context(), r.page("/", strings.ReplaceAll(`<p id=p></p><script>
		const c = new RTCPeerConnection({iceServers: [
			{urls: 'stun:127.0.0.1:PORT'}, {urls: 'turn:127.0.0.1:PORT?transport=udp', username: 'a', credential: 'b'},
		]});
		c.onicecandidate = e => { p.textContent += e.candidate ? e.candidate.candidate : 'end of candidates' };
		c.createDataChannel('x');
		c.createOffer().then(o => c.setLocalDescription(o));
		try { new WebTransport('https://127.0.0.1:PORT/').ready.catch(() => {}) } catch (e) {}
	</script>`, "PORT", port)))
	require.NoError(t, err)
	require.NotContains(t, string(page.HTML), "typ host", "it tells the page its addresses")
	require.NoError(t, r.Stop(t.Context()))
	require.NoError(t, trap.Close())
	listening.Wait()
	select {
	case <-got:
		t.Fatal("a datagram came")
	default:
	}
}

// what a page may not do, it can't do, and it does not wait for an answer.
func TestPagesMayDoLittle(t *testing.T) {
	t.Parallel()
	r := setup(t)
	r.site.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=file")
		fmt.Fprint(w, "file")
	})
	r.page("/other", "other")
	for name, c := range map[string]struct{ script, want string }{
		"dialogs":       {`alert(1); say(String(confirm(2)) + prompt(3))`, "falsenull"},
		"windows":       {`say(String(window.open('/other'))); let a = document.createElement('a'); a.href = '/other'; a.target = '_blank'; a.click()`, "null"},
		"downloads":     {`let a = document.createElement('a'); a.href = '/file'; a.download = 'file'; a.click(); location.href = '/file'; say('here')`, "here"},
		"leaving":       {`onbeforeunload = e => { e.preventDefault(); return 'stay' }; say('here')`, "here"},
		"place":         {`navigator.geolocation.getCurrentPosition(() => {}, e => say('code ' + e.code))`, "code 1"},
		"camera":        {`navigator.mediaDevices.getUserMedia({video: true}).then(() => { p.textContent = 'granted' }); say('')`, ""},
		"storage":       {`localStorage.x = (localStorage.x || '') + 'once'; document.cookie = 'x=' + document.cookie + 'once'; say(localStorage.x + document.cookie)`, "oncex=once"},
		"storage again": {`localStorage.x = (localStorage.x || '') + 'once'; document.cookie = 'x=' + document.cookie + 'once'; say(localStorage.x + document.cookie)`, "oncex=once"},
		"its name":      {`say('Headless ' + navigator.userAgent.includes('Headless'))`, "Headless false"},
		"files":         {`fetch('file:///etc/hostname').catch(() => say('refused'))`, "refused"},
	} {
		address := r.page("/"+url.PathEscape(strings.ReplaceAll(name, " ", "-")), saying(`<script>`+c.script+`</script>`))
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := r.Render(t.Context(), address)
			require.NoError(t, err)
			require.Contains(t, string(page.HTML), `<p id="p">`+c.want+`</p>`)
		})
	}
}

// pictures, films and fonts are not asked for; styles and scripts are.
func TestOnlyWhatMakesTextIsLoaded(t *testing.T) {
	t.Parallel()
	r := setup(t)
	var mu sync.Mutex
	asked := map[string]bool{}
	r.site.HandleFunc("/load/", func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		asked[strings.TrimPrefix(q.URL.Path, "/load/")] = true
		mu.Unlock()
		if strings.HasSuffix(q.URL.Path, ".css") {
			w.Header().Set("Content-Type", "text/css")
		}
	})
	_, err := r.Render(t.Context(), r.page("/", `<link rel=stylesheet href=/load/s.css><link rel=icon href=/load/icon.png>
		<style>@font-face{font-family:F;src:url(/load/f.woff2)} p{font-family:F;background:url(/load/b.png)}</style><p>text</p>
		<img src=/load/i.png><picture><source srcset=/load/p.webp><img src=/load/p.png></picture><video autoplay src=/load/v.mp4></video><audio autoplay src=/load/a.mp3></audio>
		<a ping=/load/ping id=a href="#x">x</a><script>a.click(); navigator.sendBeacon('/load/beacon'); new Image().src = '/load/n.png'</script><script src=/load/j.js></script>`))
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	delete(asked, "icon.png") // Chromium itself asks for it, through the proxy
	require.Equal(t, map[string]bool{"s.css": true, "j.js": true}, asked)
}

//
func TestLimitsOfPages(t *testing.T) {
	t.Parallel()
	r := setup(t)
	page, err := r.Render(t.Context(), r.page("/large", `<p></p><script>document.querySelector('p').textContent = '가'.repeat(4 << 20)</script>`))
	require.NoError(t, err)
	require.LessOrEqual(t, len(page.HTML), maxHTML)
	require.Greater(t, len(page.HTML), maxHTML-4)
	require.NotContains(t, string(page.HTML[maxHTML-8:]), "\ufffd")

	_, err = r.Render(t.Context(), r.page("/memory", `<script>let a = []; for (;;) a.push(new Uint8Array(8 << 20).fill(1))</script>`))
	require.ErrorIs(t, err, errCrashed)

	r.site.HandleFunc("/bytes", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 16<<20)) })
	_, err = r.Render(t.Context(), r.page("/much", `<script>(async () => { for (let i = 0; ; i++) await (await fetch('/bytes?' + i)).arrayBuffer() })()</script>`))
	require.ErrorIs(t, err, errBytes)

	var mu sync.Mutex
	requests := 0
	r.site.HandleFunc("/count", func(http.ResponseWriter, *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests++
	})
	_, err = r.Render(t.Context(), r.page("/many", fmt.Sprintf(`<script>for (let i = 0; i < %d; i++) fetch('/count?' + i).catch(() => {})</script>`, maxRequests+200)))
	require.NoError(t, err)
	mu.Lock()
	defer mu.Unlock()
	require.LessOrEqual(t, requests, maxRequests)
}

// the environment of the gateway has its secrets.
func TestEnvironmentStaysHere(t *testing.T) {
	t.Parallel()
	r := setup(t)
	_, err := r.Render(t.Context(), r.page("/", "text"))
	require.NoError(t, err)
	there, err := os.ReadFile("/proc/" + strconv.Itoa(r.running(t).cmd.Process.Pid) + "/environ")
	if os.IsNotExist(err) {
		t.Skip("no /proc: an environment can't be read here")
	}
	require.NoError(t, err)
	given := map[string]bool{}
	for _, variable := range environment("x") {
		name, _, _ := strings.Cut(variable, "=")
		given[name] = true
	}
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); !given[name] && name != "PWD" && name != "OLDPWD" && name != "_" && name != "SHLVL" {
			require.NotContains(t, "\x00"+string(there), "\x00"+name+"=", name)
		}
	}
}
