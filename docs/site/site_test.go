package site_test

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"hydrallm/docs"
	"hydrallm/docs/site"
)

func file(t *testing.T, s *site.Site, name string) string {
	t.Helper()
	text, err := s.File(name)
	require.NoError(t, err, name)
	require.NotNil(t, text, name)
	return string(text)
}

var small = fstest.MapFS{
	"index.md": {Data: []byte("# All\n\n## First\n\n- [one](one.md) and [more](sub/index.md)\n\n## Second\n\n[two](two.md), [two](two.md#b)\n")},
	"one.md": {Data: []byte("# Page `one`\n\nText with [two](two.md#what-it-does), [a folder](sub/), [a file](../deploy/x.yaml) and [there](https://example.com/x.md).\n\n" +
		"## What it does\n\n<!-- tested: TestX -->\n```yaml\nkey: \"a <b>\" # note\n```\n\n## What it does\n\n<script>alert(1)</script>\n\n| a |\n|---|\n| b |\n")},
	"two.md":       {Data: []byte("# Two\n\n## What it does, `R-1` & more\n\nwords\n")},
	"sub/index.md": {Data: []byte("# Sub\n\n[up](../one.md) ![p](../p.png)\n")},
	"sub/x.md":     {Data: []byte("No heading\n")},
	"p.png":        {Data: []byte("png")},
}

// a page has its title, the navigation of the index, its text without HTML of the document, coloured code, and links to pages in place of documents.
func TestPage(t *testing.T) {
	t.Parallel()
	s := site.New(small)
	page := file(t, s, "one.html")
	for _, want := range []string{
		"<title>Page one · HydraLLM</title>", `<h1 id="page-one">`, `data-root=""`, `<a href="one.html" aria-current="page">Page one</a>`, `<a href="sub/index.html">Sub</a>`,
		"<h2>First</h2>", "<h2>Second</h2>", `<a href="two.html#what-it-does">two</a>`, `<a href="sub/index.html">a folder</a>, a file and`,
		`<a href="https://example.com/x.md">there</a>`, `<h2 id="what-it-does">`, `<h2 id="what-it-does-1">`, `<a href="#what-it-does-1">What it does</a>`,
		`<span class="k">key:</span> <span class="s">&#34;a &lt;b&gt;&#34;</span><span class="c"> # note</span>`, `<div class="scroll" tabindex="0"><table>`, `<pre tabindex="0">`,
	} {
		require.Contains(t, page, want)
	}
	for _, no := range []string{"alert", "TestX", "deploy/x.yaml", "<!--"} {
		require.NotContains(t, page, no)
	}
	require.Equal(t, 1, strings.Count(page, `aria-current="page"`))

	below := file(t, s, "sub/x.html")
	for _, want := range []string{`data-root="../"`, `<link rel="stylesheet" href="../style.css">`, `<a href="../one.html">Page one</a>`, `<a href="../sub/x.html" aria-current="page">x</a>`} {
		require.Contains(t, below, want)
	}
	require.Equal(t, file(t, s, "sub/index.html"), file(t, s, "sub/"))
	require.Contains(t, file(t, s, ""), "<title>HydraLLM: documentation</title>")
	require.Contains(t, file(t, s, "two.html"), `<h2 id="what-it-does-r-1--more">`)
	require.Equal(t, "png", file(t, s, "p.png"))
}

// what is no file of the site is none, whatever its path looks like.
func TestNoFile(t *testing.T) {
	t.Parallel()
	s := site.New(small)
	for _, name := range []string{"one", "one.md", "none.html", "sub", "../one.html", "sub/../one.html", "/one.html", "page.html", "static/site.js", "sub/site.js", "docs.go", "./one.html", "one.html/", "sub//", "\x00.html"} {
		text, err := s.File(name)
		require.NoError(t, err, name)
		require.Nil(t, text, name)
	}
}

// the search has each section of each page once, with its words.
func TestSearch(t *testing.T) {
	t.Parallel()
	var entries []struct{ L, P, H, T string }
	require.NoError(t, json.Unmarshal([]byte(file(t, site.New(small), "search.json")), &entries))
	var links []string
	for _, e := range entries {
		links = append(links, e.L)
		if e.L == "one.html#what-it-does" {
			require.Equal(t, "Page one", e.P)
			require.Equal(t, "What it does", e.H)
			require.Equal(t, `key: "a <b>" # note`, e.T)
		}
	}
	require.Contains(t, links, "one.html#what-it-does-1")
	require.Len(t, slices.Compact(slices.Clone(links)), len(links))
}

var (
	reference = regexp.MustCompile(`(?:src|href)="([^"]*)"`)
	anchor    = regexp.MustCompile(` id="([^"]*)"`)
)

// in the site of the documents every link leads to a file of the site, or to an anchor of its page, nothing is loaded from elsewhere, and no
// page has a script or a style in its text.
func TestSiteOfTheDocuments(t *testing.T) {
	t.Parallel()
	s := site.New(docs.Files)
	paths, err := s.Paths()
	require.NoError(t, err)
	anchors := map[string]map[string]bool{}
	for _, name := range paths {
		text := file(t, s, name)
		if path.Ext(name) == ".html" {
			anchors[name] = map[string]bool{}
			for _, m := range anchor.FindAllStringSubmatch(text, -1) {
				require.False(t, anchors[name][m[1]], "%s has the id %s twice", name, m[1])
				anchors[name][m[1]] = true
			}
		}
	}
	for name := range anchors {
		text := file(t, s, name)
		require.NotRegexp(t, `<script>|<style| style="| on\w+="|javascript:`, strings.ReplaceAll(text, "&lt;", ""), name)
		require.Equal(t, 1, strings.Count(text, "<h1"), name)
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				require.Contains(t, text, `<a href="`+m[1]+`"`, "%s loads something from elsewhere", name)
				continue
			}
			target, id, _ := strings.Cut(m[1], "#")
			if target == "" {
				target = name
			} else {
				target = path.Join(path.Dir(name), target)
			}
			require.Contains(t, paths, target, "%s: %s", name, m[1])
			require.True(t, id == "" || anchors[target][id], "%s: %s", name, m[1])
		}
	}
}

func BenchmarkPage(b *testing.B) {
	s := site.New(docs.Files)
	for b.Loop() {
		if _, err := s.File("configuration.html"); err != nil {
			b.Fatal(err)
		}
	}
}
