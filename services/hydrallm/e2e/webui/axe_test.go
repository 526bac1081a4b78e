//go:build e2e

package webui

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-rod/rod/lib/proto"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/install"
)

var npm = install.NPM("node")

// axe is the script that looks for what keeps people from using a page.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(npm.Dir(t), "node_modules/axe-core/axe.min.js"))
	require.NoError(t, err)
	return string(script)
}

// violation is what axe has against a page.
type violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// inspect has axe look at what is there, by the rules of WCAG 2.1 A and AA and its own best practices. It waits for what fades in, whose colours axe would take for
// the real ones.
func (v *visit) inspect(script, where string) {
	v.t.Helper()
	v.until(`() => !document.querySelector('main .skeleton')`)
	if !v.holds(`() => 'axe' in window`) { // the policy lets no page do this
		loaded, err := proto.RuntimeEvaluate{Expression: script}.Call(v.page)
		require.NoError(v.t, err)
		require.Nil(v.t, loaded.ExceptionDetails)
	}
	var found []violation
	require.NoError(v.t, json.Unmarshal(v.eval(`async () => {
		await Promise.all(document.getAnimations().filter((a) => a.effect?.getComputedTiming().endTime < Infinity).map((a) => a.finished.catch(() => {})));
		const result = await axe.run(document);
		if (!result.passes.some(({ id }) => id === 'color-contrast')) throw new Error('axe has not looked at anything');
		return result.violations.map(({ id, impact, help, nodes }) => ({ id, impact, help, nodes: nodes.slice(0, 5).map(({ html, failureSummary }) => ({ html: html.slice(0, 300), failureSummary })) }));
	}`), &found))
	for _, f := range found {
		var nodes strings.Builder
		for _, n := range f.Nodes {
			fmt.Fprintf(&nodes, "\n%s\n\t%s", n.HTML, n.Summary)
		}
		v.t.Errorf("%s: %s (%s): %s%s", where, f.ID, f.Impact, f.Help, nodes.String())
	}
}

// everywhere has axe look in both themes, wide and on a phone.
func (v *visit) everywhere(script, what string) {
	v.t.Helper()
	for _, theme := range []string{"light", "dark"} {
		v.eval(`(theme) => { document.documentElement.dataset.theme = theme; }`, theme)
		for _, width := range []int{1280, 390} {
			v.size(width, 900)
			v.inspect(script, fmt.Sprintf("%s, %s, %d pixels", what, theme, width))
		}
	}
}

// axe finds nothing in a section that has something in it, nor in a dialog.
func TestAxeSections(t *testing.T) {
	t.Parallel()
	script := axe(t)
	v := operator(t, furnished(t).url+"/")
	for _, id := range sections {
		v.section(id)
		if id == "playground" {
			v.section("playground?session=evening-1&model=demo")
			v.see("[data-role=assistant] strong", "harbour")
		}
		v.everywhere(script, id)
	}
	v.section("clientkeys")
	v.clickOn("[data-test=make-key]", "")
	v.see("dialog [data-test=create-key]", "")
	v.everywhere(script, "the dialog for a new key")
	v.clickOn("dialog .bar button", "")
	v.section("sessions")
	v.clickOn("[data-session=evening-1] .link", "")
	v.see("dialog [data-test=session-messages]", "harbour")
	v.everywhere(script, "the dialog with a session")
}

// axe finds nothing before somebody is let in, nor in the first steps.
func TestAxeWelcome(t *testing.T) {
	t.Parallel()
	script := axe(t)
	fake := fakellm.Start(t)
	fake.Offer("small", "large", "another")
	v := stranger(t, serve(t, pooled(fake)).url+"/")
	v.see("main[data-gate=key] h1", "")
	v.everywhere(script, "the gate")
	v.enter("not-" + adminKey)
	v.see("#gate-why", "does not take this key")
	v.everywhere(script, "the gate after a wrong key")
	v.enter(adminKey)
	v.until(`() => document.querySelectorAll('dialog[data-dialog=onboarding] .modellist input').length >= 3`)
	v.see("dialog table", "groq")
	v.everywhere(script, "the first steps")

	closed := stranger(t, serveWith(t, model(fake), "queue_timeout: 1m").url+"/")
	closed.see("main[data-gate=disabled] h1", "")
	closed.everywhere(script, "the gate of a gateway without a key")
}

// axe finds nothing in the documents.
func TestAxeDocuments(t *testing.T) {
	t.Parallel()
	script := axe(t)
	v := stranger(t, serve(t, model(fakellm.Start(t))).url+"/")
	for _, page := range []string{"configuration.html", "clients/agents.html"} {
		v.visit("docs/" + page)
		v.everywhere(script, "docs/"+page)
	}
	v.size(1280, 900)
	v.write("#search", "key")
	v.see("#found a", "")
	v.inspect(script, "the search")
}
