//go:build unix

package browser

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/guard"
)

// a page that goes elsewhere by itself is complete when the one that it goes to is, whatever the one before still asked for. Here nothing ends
// by a limit, and what is asked for at /never is never answered.
func TestPagesThatGoElsewhere(t *testing.T) {
	t.Parallel()
	r := setup(t, func(cfg *Config) { cfg.Pages = 4 })
	var asked gates
	never := func(_ http.ResponseWriter, q *http.Request) {
		asked.at(q).open()
		<-q.Context().Done()
	}
	r.site.HandleFunc("/never", never)
	r.site.HandleFunc("/begun", func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprint(w, "begun")
		_ = http.NewResponseController(w).Flush()
		never(w, q)
	})
	r.site.HandleFunc("/asked", func(_ http.ResponseWriter, q *http.Request) { asked.wait(q) })
	r.site.HandleFunc("/empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	r.site.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Disposition", "attachment; filename=file")
		w.WriteHeader(http.StatusAccepted)
	})
	r.page("/new", `<p>new</p>`)
	r.page("/back", `<script>fetch('/never?back'); onload = () => history.back()</script>`)
	r.page("/asking", `<script>fetch('/never?' + location.search.slice(1))</script>`)
	elsewhere := strings.Replace(r.url, "127.0.0.1", "localhost", 1) + "/new"

	// CASE is the name of the case, and asked(then) calls then when its request has come to the server.
	const begin = `<script>const asked = then => fetch('/asked?CASE').then(then), once = then => { if (!localStorage.x) { localStorage.x = 1; then() } }</script>`
	for name, c := range map[string]struct{ html, want string }{
		"refresh":             {`<script>fetch('/never?CASE')</script><meta http-equiv=refresh content="0; url=/new">`, "/new"},
		"refresh-elsewhere":   {`<script>fetch('/never?CASE')</script><meta http-equiv=refresh content="0; url=` + elsewhere + `">`, elsewhere},
		"refresh-later":       {`<script async src=/never?CASE></script><meta http-equiv=refresh content="1; url=/new">`, "/new"},
		"refresh-itself":      {`<script>once(() => { fetch('/never?CASE'); document.write('<meta http-equiv=refresh content=0>') })</script>`, ""},
		"at-once":             {`<script>fetch('/never?CASE'); location.href = '/new'</script>`, "/new"},
		"with-load":           {`<script>fetch('/never?CASE'); onload = () => { location.href = '/new' }</script>`, "/new"},
		"when-asked":          {`<script>fetch('/never?CASE'); asked(() => { location.href = '/new' })</script>`, "/new"},
		"answer-begun":        {`<script>fetch('/begun?CASE').then(() => location.assign('/new'))</script>`, "/new"},
		"script":              {`<script async src=/never?CASE></script><script>asked(() => location.replace('/new'))</script>`, "/new"},
		"outlives-its-page":   {`<script>fetch('/never?CASE', {keepalive: true}); asked(() => location.replace('/new'))</script>`, "/new"},
		"asks-when-left":      {`<script>onpagehide = () => fetch('/never?CASE'); onload = () => location.replace('/new')</script>`, "/new"},
		"form":                {`<form action=/new method=post></form><script>fetch('/never?CASE'); asked(() => document.forms[0].submit())</script>`, "/new"},
		"two-ways":            {`<script>location = '/never?CASE'; asked(() => { location = '/new' })</script>`, "/new"},
		"again":               {`<script>once(() => { fetch('/never?CASE'); asked(() => location.reload()) })</script>`, ""},
		"there-and-back":      {`<script>once(() => { fetch('/never?CASE'); onload = () => setTimeout(() => { location = '/back' }) })</script>`, ""},
		"frame-that-asks":     {`<iframe src=/asking?CASE></iframe><script>asked(() => { location = '/new' })</script>`, "/new"},
		"frame-that-loads":    {`<iframe src=/never?CASE></iframe><script>asked(() => { location = '/new' })</script>`, "/new"},
		"frame-goes":          {`<iframe id=f src=/asking?CASE></iframe><script>asked(() => { f.src = '/new' })</script>`, ""},
		"frame-goes-at-once":  {`<iframe id=f src=/never?CASE></iframe><script>asked(() => { f.src = '/new' })</script>`, ""},
		"frame-is-rewritten":  {`<iframe id=f src=/never?CASE></iframe><script>asked(() => { f.srcdoc = 'new' })</script>`, ""},
		"frame-is-removed":    {`<iframe id=f src=/asking?CASE></iframe><script>asked(() => f.remove())</script>`, ""},
		"frames-are-removed":  {`<iframe id=f srcdoc="<iframe src=/never?CASE></iframe>"></iframe><script>asked(() => f.remove())</script>`, ""},
		"stops":               {`<script>location = '/never?CASE'; asked(stop)</script>`, ""},
		"goes-nowhere":        {`<script>location = '/never?CASE'; asked(() => { location = '/empty' })</script>`, ""},
		"goes-to-a-file":      {`<script>location = '/never?CASE'; asked(() => { location = '/file' })</script>`, ""},
		"goes-to-a-program":   {`<script>onload = () => { location = 'mailto:a@example.com' }</script>`, ""},
		"goes-within":         {`<script>onload = () => { history.pushState(1, '', '/other'); history.back() }</script>`, ""},
		"workers":             {`<script>new Worker('/never?CASE'); asked(() => new SharedWorker('/new'))</script>`, ""},
		"goes-to-nothing":     {`<script>fetch('/never?CASE'); asked(() => { location = 'about:blank' })</script>`, "refused"},
		"goes-to-a-dead-host": {`<script>fetch('/never?CASE'); location = 'http://127.0.0.1:1/'</script>`, "refused"},
	} {
		address := r.page("/"+name, strings.ReplaceAll(begin+c.html, "CASE", name))
		want := map[bool]string{true: address, false: r.url + c.want}[c.want == ""]
		if c.want == elsewhere {
			want = elsewhere
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := r.Render(t.Context(), address)
			if c.want == "refused" {
				require.ErrorIs(t, err, guard.ErrBlocked)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, page.URL)
			require.Equal(t, http.StatusOK, page.Status)
		})
	}
}
