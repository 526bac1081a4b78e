package webui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-rod/rod"
	"github.com/go-rod/rod/lib/input"
	"github.com/go-rod/rod/lib/proto"
	"github.com/go-rod/rod/lib/utils"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

// visit is a page of somebody who has a browser for it alone. Whatever a test does with it, it ends with a look at what must never happen: a script
// that is not the gateway's, something that the policy forbids, a request to anybody else, an error that nobody caught.
type visit struct {
	t    *testing.T
	page *rod.Page
	root string // of the page

	mu       sync.Mutex
	asked    []string // addresses
	problems []string
}

// watch tells what the policy forbade, and counts clicks. Its binding is there in each document of the page.
const watch = `addEventListener('securitypolicyviolation', (e) => reportProblem(e.violatedDirective + ' forbids ' + (e.blockedURI || e.sourceFile)));
	let testClicks = 0; addEventListener('click', () => testClicks++, true);`

// stranger opens the page of a gateway, whose address ends with a slash, in a browser that has never been there.
func stranger(t *testing.T, root string) *visit {
	t.Helper()
	browser, err := browse(t).Incognito()
	require.NoError(t, err)
	t.Cleanup(func() { _ = browser.Close() }) // the browser may have gone
	page, err := browser.Page(proto.TargetCreateTarget{})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	page = page.Context(ctx).Sleeper(func() utils.Sleeper { return utils.BackoffSleeper(5*time.Millisecond, 100*time.Millisecond, nil) })
	v := &visit{t: t, page: page, root: root}
	follow := page.EachEvent(v.requested, v.threw, v.asksUser, v.called)
	var following sync.WaitGroup
	following.Go(follow)
	t.Cleanup(func() {
		cancel()
		following.Wait()
		v.verify()
	})
	require.NoError(t, proto.RuntimeAddBinding{Name: "reportProblem"}.Call(page))
	_, err = page.EvalOnNewDocument(watch)
	require.NoError(t, err)
	require.NoError(t, proto.EmulationSetFocusEmulationEnabled{Enabled: true}.Call(page))
	v.size(1280, 900)
	v.visit("ui/")
	return v
}

// operator is a stranger who gives the admin key, and has chosen models before.
func operator(t *testing.T, root string) *visit {
	t.Helper()
	v := stranger(t, root)
	v.eval(`() => localStorage.setItem('hydrallm.onboarding-skipped', '1')`)
	v.enter(adminKey)
	v.see("h1", "Overview")
	return v
}

// enter gives a key to the page that asks for one.
func (v *visit) enter(key string) {
	v.t.Helper()
	v.write("#admin-key", key)
	v.click("[data-test=enter]")
}

// visit opens an address below the root of the gateway. Unlike rod's Navigate it does not press the stop button before, which would end what a page has asked that
// stays where only the part behind "#" is another one.
func (v *visit) visit(path string) {
	v.t.Helper()
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	opened, err := proto.PageNavigate{URL: v.root + path}.Call(page)
	require.NoError(v.t, err)
	require.Empty(v.t, opened.ErrorText)
	require.NoError(v.t, page.WaitLoad())
}

func (v *visit) reload() {
	v.t.Helper()
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	require.NoError(v.t, page.Reload())
}

func (v *visit) size(width, height int) {
	v.t.Helper()
	require.NoError(v.t, v.page.SetViewport(&proto.EmulationSetDeviceMetricsOverride{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 700}))
}

// eval runs a function in the page and gives what it returned as JSON.
func (v *visit) eval(js string, args ...any) json.RawMessage {
	v.t.Helper()
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	got, err := page.Evaluate(rod.Eval(js, args...).ByPromise())
	require.NoError(v.t, err)
	return json.RawMessage(got.Value.JSON("", ""))
}

// holds says whether a function in the page gives true.
func (v *visit) holds(js string, args ...any) bool {
	v.t.Helper()
	return string(v.eval(js, args...)) == "true"
}

// until waits for a function in the page to give something that is true. What it looks at need not be there yet.
func (v *visit) until(js string, args ...any) {
	v.t.Helper()
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	if err := page.Wait(rod.Eval(`(...args) => { try { return (`+js+`)(...args); } catch { return false; } }`, args...)); err != nil {
		v.fail("waited in vain (%v): %s %v", err, js, args)
	}
}

// fail ends the test with what the page shows.
func (v *visit) fail(format string, args ...any) {
	v.t.Helper()
	v.picture("failed")
	v.t.Fatalf(format+"\nthe page: %s", append(args, v.eval(`() => document.body.innerText.slice(0, 3000)`))...)
}

// find is a function of the page that gives the first element in sight of a selector that has a text.
const find = `const find = (css, text) => [...document.querySelectorAll(css)].find((e) => e.checkVisibility() && e.textContent.includes(text));`

// see waits for an element with a text.
func (v *visit) see(css, text string) {
	v.t.Helper()
	v.until(`(css, text) => { `+find+` return !!find(css, text); }`, css, text)
}

// gone waits until no element of a selector with a text is in sight.
func (v *visit) gone(css, text string) {
	v.t.Helper()
	v.until(`(css, text) => { `+find+` return !find(css, text); }`, css, text)
}

// element waits for an element with a text that is not disabled.
func (v *visit) element(css, text string) *rod.Element {
	v.t.Helper()
	v.until(`(css, text) => { `+find+` const e = find(css, text); return e && !e.disabled; }`, css, text)
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	e, err := page.ElementByJS(rod.Eval(`(css, text) => { `+find+` return find(css, text); }`, css, text))
	require.NoError(v.t, err)
	return e.Context(v.page.GetContext()).Timeout(await.Limit)
}

func (v *visit) click(css string) {
	v.t.Helper()
	v.clickOn(css, "")
}

// clickOn clicks at an element with a text, with the mouse. News may replace the element under the mouse, so that nothing is clicked; then it clicks at the
// one that is there instead.
func (v *visit) clickOn(css, text string) {
	v.t.Helper()
	clicks := func() string { return string(v.eval(`() => [performance.timeOrigin, testClicks]`)) }
	await.True(v.t, func() bool {
		e := v.element(css, text)
		defer e.CancelTimeout()
		before := clicks()
		return e.Click(proto.InputMouseButtonLeft, 1) == nil && clicks() != before
	}, "a click at", css, text)
}

// write puts a text into a field, as if it was typed there. Like clickOn it does so again if the field has been replaced meanwhile.
func (v *visit) write(css, text string) {
	v.t.Helper()
	await.True(v.t, func() bool {
		e := v.element(css, "")
		defer e.CancelTimeout()
		return e.SelectAllText() == nil && e.Input(text) == nil && v.holds(`(css, text) => { `+find+` return find(css, '')?.value === text; }`, css, text)
	}, "writing into", css)
}

// choose takes a value of a list.
func (v *visit) choose(css, value string) {
	v.t.Helper()
	v.element(css, "").CancelTimeout()
	v.until(`(css, value) => { const e = document.querySelector(css); e.value = value; e.dispatchEvent(new Event('change', { bubbles: true })); return true; }`, css, value)
}

func (v *visit) press(keys ...input.Key) {
	v.t.Helper()
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	require.NoError(v.t, page.Keyboard.Type(keys...))
}

// section goes to a section and waits for it.
func (v *visit) section(id string) {
	v.t.Helper()
	v.eval(`(id) => { location.hash = '#/' + id; }`, id)
	v.until(`(id) => document.querySelector('main')?.dataset.section === id`, strings.SplitN(id, "?", 2)[0])
}

// text is all that there is to read in the page and its attributes, whether it is in sight or not.
func (v *visit) text() string {
	v.t.Helper()
	var all string
	require.NoError(v.t, json.Unmarshal(v.eval(`() => document.documentElement.outerHTML + [...document.querySelectorAll('input, textarea')].map((e) => e.value).join('\n')`), &all))
	return all
}

// picture writes the whole page, if somebody wants to see it.
func (v *visit) picture(name string) {
	v.t.Helper()
	v.shoot(name, true)
}

// inSight is picture for the part that is in the window.
func (v *visit) inSight(name string) {
	v.t.Helper()
	v.shoot(name, false)
}

func (v *visit) shoot(name string, whole bool) {
	v.t.Helper()
	if *screenshots == "" {
		return
	}
	page := v.page.Timeout(await.Limit)
	defer page.CancelTimeout()
	image, err := page.Screenshot(whole, &proto.PageCaptureScreenshot{Format: proto.PageCaptureScreenshotFormatPng})
	require.NoError(v.t, err)
	require.NoError(v.t, os.MkdirAll(*screenshots, 0o755))
	file := strings.ReplaceAll(fmt.Sprintf("%s-%s.png", strings.TrimPrefix(v.t.Name(), "Test"), name), "/", "-")
	require.NoError(v.t, os.WriteFile(filepath.Join(*screenshots, file), image, 0o600))
}

func (v *visit) requested(e *proto.NetworkRequestWillBeSent) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.asked = append(v.asked, e.Request.URL)
}

func (v *visit) threw(e *proto.RuntimeExceptionThrown) {
	text := e.ExceptionDetails.Text
	if e.ExceptionDetails.Exception != nil {
		text += " " + e.ExceptionDetails.Exception.Description
	}
	v.problem("an error that nobody caught: " + text)
}

func (v *visit) asksUser(e *proto.PageJavascriptDialogOpening) {
	v.problem("a script opened a dialog: " + e.Message)
	_ = proto.PageHandleJavaScriptDialog{Accept: false}.Call(v.page) // the page would wait for an answer
}

func (v *visit) called(e *proto.RuntimeBindingCalled) { v.problem(e.Payload) }

func (v *visit) problem(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.problems = append(v.problems, text)
}

// forgive gives the problems so far, which a test has caused by intent, and forgets them.
func (v *visit) forgive() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := v.problems
	v.problems = nil
	return list
}

// requests gives the addresses that the page has asked for.
func (v *visit) requests() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]string(nil), v.asked...)
}

// verify is the look at what must never happen.
func (v *visit) verify() {
	v.t.Helper()
	requests := v.requests()
	require.NotEmpty(v.t, requests)
	home, err := url.Parse(v.root)
	require.NoError(v.t, err)
	for _, asked := range requests {
		u, err := url.Parse(asked)
		require.NoError(v.t, err)
		if u.Scheme == "data" || u.Scheme == "blob" {
			continue
		}
		require.Equal(v.t, home.Host, u.Host, asked)
		require.True(v.t, strings.HasPrefix(u.Path, home.Path), asked)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	require.Empty(v.t, v.problems)
}
