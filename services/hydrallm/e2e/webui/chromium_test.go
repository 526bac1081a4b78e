package webui

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"go.uber.org/goleak"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/machine"
)

// screenshots is where pictures are written; "" = nowhere.
var screenshots = flag.String("screenshots", "", "write pictures of all sections of the web interface into this directory")

// tests ends the browser behind the last test, before it is looked for goroutines that were left behind.
type tests struct{ *testing.M }

func (m tests) Run() int {
	code := m.M.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// fasthttp keeps the date of its answers in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(tests{m}, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// chromium is the one browser of all tests. Each page has a profile of its own in it.
type chromium struct {
	once    sync.Once
	err     error
	cmd     *exec.Cmd
	profile string
	exited  chan struct{}
	browser *rod.Browser
	cancel  context.CancelFunc
}

var shared chromium

// names are those that Chromium has on Linux systems.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"}

// browse gives the browser, or ends a test that can't have one.
func browse(t *testing.T) *rod.Browser {
	t.Helper()
	path, err := "", error(nil)
	for _, name := range names {
		if path, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		machine.Missing(t, "Chromium", err)
	}
	shared.once.Do(func() { shared.err = shared.start(path) })
	if shared.err != nil {
		t.Fatalf("starting %s: %v", path, shared.err)
	}
	return shared.browser
}

func (c *chromium) start(path string) (err error) {
	if c.profile, err = os.MkdirTemp("", "hydrallm-webui-"); err != nil {
		return err
	}
	args := []string{
		"--headless", "--remote-debugging-port=0", "--user-data-dir=" + c.profile, "--no-first-run", "--no-default-browser-check", "--disable-sync",
		"--disable-background-networking", "--disable-component-update", "--disable-default-apps", "--disable-extensions", "--disable-breakpad", "--disable-gpu",
		"--disable-dev-shm-usage", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding",
		"--force-color-profile=srgb", "--font-render-hinting=none", "--hide-scrollbars", "--lang=en-US", "--password-store=basic",
	}
	if os.Geteuid() == 0 { // it refuses to run in its sandbox
		args = append(args, "--no-sandbox")
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.cmd = exec.CommandContext(ctx, path, args...)
	c.cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.profile, "LANG=en_US.UTF-8", "TZ=UTC", "XDG_RUNTIME_DIR=" + c.profile}
	c.cmd.WaitDelay = time.Second
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.exited = make(chan struct{})
	go func() {
		defer close(c.exited)
		_ = c.cmd.Wait()
	}()
	address, err := c.address()
	if err != nil {
		return err
	}
	browser := rod.New().Context(ctx).ControlURL(address).NoDefaultDevice()
	if err := browser.Connect(); err != nil {
		return err
	}
	c.browser = browser
	return nil
}

// address waits for what Chromium writes down when it listens.
func (c *chromium) address() (string, error) {
	end := time.Now().Add(await.Limit)
	for time.Now().Before(end) {
		text, err := os.ReadFile(filepath.Join(c.profile, "DevToolsActivePort"))
		if port, path, ok := bytes.Cut(bytes.TrimSpace(text), []byte("\n")); err == nil && ok {
			return fmt.Sprintf("ws://127.0.0.1:%s%s", port, path), nil
		}
		select {
		case <-c.exited:
			return "", errors.New("the browser has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return "", errors.New("the browser does not listen")
}

// stop ends the browser, if there is one, and removes what it wrote.
func (c *chromium) stop() error {
	if c.cancel == nil {
		return nil
	}
	if c.browser != nil {
		_ = c.browser.Close() // it is killed if it does not
		select {
		case <-c.exited:
		case <-time.After(await.Limit):
		}
	}
	c.cancel()
	if c.exited != nil {
		<-c.exited
	}
	var err error
	for range 50 { // its children may still write
		if err = os.RemoveAll(c.profile); err == nil {
			return nil
		}
		<-time.After(50 * time.Millisecond)
	}
	return err
}
