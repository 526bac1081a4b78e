package webui

import (
	"testing"

	"github.com/go-rod/rod/lib/input"

	"hydrallm/shared/testkit/fakellm"
)

// in the documents a search leads to a section, and the theme is the reader's; what they load, and what must never happen, is looked at by the visit.
func TestDocumentsInABrowser(t *testing.T) {
	t.Parallel()
	v := stranger(t, serve(t, model(fakellm.Start(t))).url+"/")
	v.visit("docs/clients/agents.html")
	v.see("main h1", "Coding agents")
	v.see("nav [aria-current=page]", "Coding agents")
	v.write("#search", "max_connections")
	v.see("#found a", "Configuration")
	v.see("#found mark", "max_connections")
	v.clickOn("#found a", "Configuration")
	v.until(`() => location.pathname.endsWith('/docs/configuration.html') && location.hash.length > 1`)
	v.see("main h1", "Configuration")
	v.write("#search", "nothing-has-this-word")
	v.see("#found", "Nothing has all these words")
	v.press(input.Escape)
	v.gone("#found", "")
	v.eval(`() => { document.documentElement.dataset.theme = 'light'; }`)
	v.click("#theme")
	v.until(`() => document.documentElement.dataset.theme === 'dark'`)
	v.reload()
	v.until(`() => document.documentElement.dataset.theme === 'dark'`)
	v.picture("dark")
}
