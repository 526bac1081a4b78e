package reader

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

//
func TestNeedsScripts(t *testing.T) {
	t.Parallel()
	const external = `<script src="/main.js"></script>`
	article := strings.Repeat("Words of an article. ", 20)
	for name, c := range map[string]struct {
		html      string
		extracted int
		want      bool
	}{
		"a root that scripts fill":          {`<body><div id="root"></div>` + external, 0, true},
		"with a comment in it":              {`<div id=app><!-- app --> </div>` + external, 300, true},
		"a component":                       {`<body><app-root></app-root>` + external, 0, true},
		"a root inside of another":          {`<div id=app><div id=main></div></div>` + external, 0, true},
		"a root with a wheel":               {`<div id=root><div class=wheel>Loading...</div></div>` + external, 10, true},
		"a notice":                          {`<noscript>You need to enable JavaScript.</noscript><div>x</div>` + external, 300, true},
		"a notice in Korean":                {`<noscript><p>자바스크립트를 켜 주세요.</p></noscript>` + external, 300, true},
		"scripts alone":                     {`<title>A shop</title>` + external, 0, true},
		"a large script in the page":        {`<p>x</p><script>` + strings.Repeat("x=1;", 200) + `</script>`, 1, true},
		"leads elsewhere":                   {`<meta http-equiv="Refresh" content="0; url=/there">`, 0, true},
		"a challenge":                       {`<h1>Just a moment...</h1><script src=/cdn/challenge.js></script>`, 16, true},
		"a module":                          {`<script type=module src=/m.js></script>`, 0, true},
		"much text":                         {`<div id=root></div><noscript>enable javascript</noscript>` + external, plenty, false},
		"no scripts":                        {`<p>A short page.</p>`, 13, false},
		"no scripts, an empty root":         {`<div id=root></div><p>A short page.</p>`, 13, false},
		"a script that counts":              {`<p>A short page.</p><script>count()</script>`, 13, false},
		"data":                              {`<p>A short page.</p><script type="application/ld+json">` + strings.Repeat("{}", 900) + `</script>`, 13, false},
		"a short article with scripts":      {`<p>` + article + `</p>` + external, len(article), false},
		"text that is no article":           {`<nav>` + article + article + `</nav>` + external, 10, false},
		"a root with the text in it":        {`<div id=root><p>` + article + `</p></div>` + external, len(article), false},
		"a notice about something else":     {`<noscript><img src=/count.gif></noscript><p>` + article + `</p>` + external, len(article), false},
		"an article that refreshes":         {`<meta http-equiv=refresh content=300><p>` + article, len(article), false},
		"a root that is only named in text": {`<p>&lt;div id="root">&lt;/div></p><p>` + article + external, len(article), false},
		"nothing":                           {``, 0, false},
		"broken":                            {`<div id=root><script src="`, 0, false},
	} {
		require.Equal(t, c.want, needsScripts([]byte(c.html), c.extracted), name)
	}
}

func FuzzSurvey(f *testing.F) {
	f.Add([]byte(`<div id=app></div><noscript>javascript</noscript><script type=module src=x>x</script><meta http-equiv=refresh><svg/><p>t`))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := survey(body)
		require.LessOrEqual(t, s.visible+s.inline, len(body))
	})
}
