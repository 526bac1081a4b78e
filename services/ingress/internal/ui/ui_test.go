package ui_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/ui"
)

// folder is that of all files but the page, and the page itself.
func folder(t *testing.T) (name, page string) {
	t.Helper()
	page = string(ui.Page("").Body)
	found := regexp.MustCompile(`src="([0-9a-f]{16})/app\.js"`).FindStringSubmatch(page)
	require.Len(t, found, 2)
	return found[1], page
}

// source gives the modules by their names below the folder.
func source(t *testing.T) map[string]string {
	t.Helper()
	in, _ := folder(t)
	files := map[string]string{}
	for name, f := range ui.Files() {
		if strings.HasSuffix(name, ".js") {
			files[strings.TrimPrefix(name, in+"/")] = string(f.Body)
		}
	}
	require.NotEmpty(t, files)
	return files
}

// what the page names is there, and every file but the page has a name that changes with what is in it.
func TestPageNamesItsFiles(t *testing.T) {
	t.Parallel()
	in, page := folder(t)
	links := regexp.MustCompile(`(?:src|href)="([^"]+)"`).FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, links)
	for _, l := range links {
		require.Contains(t, ui.Files(), l[1])
	}
	for _, locale := range ui.Locales() {
		require.Contains(t, string(ui.Page(locale).Body), `<html lang="en" data-locale="`+locale+`">`)
		require.False(t, ui.Page(locale).Immutable)
	}
	require.Contains(t, page, `<html lang="en">`)
	require.Nil(t, ui.Page("fr"))
	for name, f := range ui.Files() {
		require.True(t, f.Immutable, name)
		require.True(t, strings.HasPrefix(name, in+"/"), name)
		require.NotEmpty(t, f.Body, name)
		require.NotEmpty(t, f.Type, name)
		if f.Gzip == nil {
			continue
		}
		r, err := gzip.NewReader(bytes.NewReader(f.Gzip))
		require.NoError(t, err)
		body, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, f.Body, body, name)
	}
	for name := range source(t) {
		require.Contains(t, page, `<link rel="modulepreload" href="`+in+"/"+name+`">`)
	}
}

var imports = regexp.MustCompile(`(?m)^import\b[^']*'([^']+)'|^export\b[^'=]*\bfrom '([^']+)'`)

// every import leads to a module by a relative path, and every module is used.
func TestModulesAreLinked(t *testing.T) {
	t.Parallel()
	modules := source(t)
	used := map[string]bool{}
	open := []string{"app.js"}
	for len(open) > 0 {
		name := open[0]
		open = open[1:]
		if used[name] {
			continue
		}
		used[name] = true
		body, ok := modules[name]
		require.True(t, ok, name)
		for _, m := range imports.FindAllStringSubmatch(body, -1) {
			require.Regexp(t, `^\.\.?/`, m[1]+m[2], name)
			to := path.Join(path.Dir(name), m[1]+m[2])
			require.Contains(t, modules, to, "%s imports %s", name, m[1]+m[2])
			open = append(open, to)
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(modules)), slices.Collect(maps.Keys(used)))
}

// nothing comes from elsewhere, and nothing needs what the policy forbids.
func TestFilesNeedNothingElse(t *testing.T) {
	t.Parallel()
	address := regexp.MustCompile(`(?i)\b(?:https?|wss?):(?:\\?/){2}[\w.-]*`)
	forbidden := regexp.MustCompile(`\binnerHTML\b|\bouterHTML\b|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\('style'|\bon[a-z]+="`)
	for name, f := range ui.Files() {
		for _, found := range address.FindAllString(string(f.Body), -1) {
			require.Equal(t, "http://www.w3.org", found, name) // the name of SVG
		}
		if strings.HasSuffix(name, ".css") {
			require.NotContains(t, string(f.Body), "url(", name)
			require.NotContains(t, string(f.Body), "@import", name)
			require.NotContains(t, string(f.Body), "gradient(to", name)
		}
		require.NotRegexp(t, forbidden, string(f.Body), name)
	}
	_, page := folder(t)
	require.NotRegexp(t, `<style|style="|<script[^>]*>[^<]`, page)
	for name, body := range source(t) { // markup is read in one place
		require.Equal(t, name == "core/dom.js", strings.Contains(body, "DOMParser"), name)
	}
}

// Modules are small; catalogues are lists.
func TestModulesAreSmall(t *testing.T) {
	t.Parallel()
	for name, body := range source(t) {
		if !strings.HasPrefix(name, "lang/") {
			require.LessOrEqual(t, strings.Count(body, "\n"), 400, name)
		}
	}
}

// catalogues reads the texts of each language.
func catalogues(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for name, body := range source(t) {
		if !strings.HasPrefix(name, "lang/") {
			continue
		}
		_, text, ok := strings.Cut(body, "export default ")
		require.True(t, ok, name)
		texts := map[string]string{}
		require.NoError(t, json.Unmarshal([]byte(strings.TrimSuffix(strings.TrimSpace(text), ";")), &texts), name)
		all[strings.TrimSuffix(path.Base(name), ".js")] = texts
	}
	return all
}

// both languages have every text, with the same values in it.
func TestLanguagesAreComplete(t *testing.T) {
	t.Parallel()
	all := catalogues(t)
	require.ElementsMatch(t, ui.Locales(), slices.Collect(maps.Keys(all)))
	value := regexp.MustCompile(`\{\w+\}`)
	hangul := regexp.MustCompile(`\p{Hangul}`)
	for key, text := range all["en"] {
		other, ok := all["ko"][key]
		require.True(t, ok, key)
		require.NotEmpty(t, strings.TrimSpace(text), key)
		require.NotEmpty(t, strings.TrimSpace(other), key)
		require.ElementsMatch(t, value.FindAllString(text, -1), value.FindAllString(other, -1), key)
		require.NotRegexp(t, hangul, text, key)
	}
	require.Len(t, all["ko"], len(all["en"]))
}

// every text that modules ask for is there, and none is written into them.
func TestTextsAreInTheCatalogues(t *testing.T) {
	t.Parallel()
	en := catalogues(t)["en"]
	asked := regexp.MustCompile(`\bt\('([\w.]+)'`)
	many := regexp.MustCompile(`\btn\('([\w.]+)'`)
	begins := regexp.MustCompile("\\btn?\\(`([\\w.]+)\\$")
	for name, body := range source(t) {
		if strings.HasPrefix(name, "lang/") {
			continue
		}
		for _, m := range asked.FindAllStringSubmatch(body, -1) {
			require.Contains(t, en, m[1], name)
		}
		for _, m := range many.FindAllStringSubmatch(body, -1) {
			require.Contains(t, en, m[1], name)
			require.Contains(t, en, m[1]+".one", name)
		}
		for _, m := range begins.FindAllStringSubmatch(body, -1) {
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(en)), func(key string) bool { return strings.HasPrefix(key, m[1]) }), "%s: %s", name, m[1])
		}
		if name != "core/i18n.js" { // it has the names of the languages
			require.NotRegexp(t, `\p{Hangul}`, body, name)
		}
	}
}
