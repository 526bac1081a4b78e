package site

import (
	"html"
	"regexp"
	"strings"
	"sync"
)

// Parts of the rules. The name of a group is the class of what it matches.
const (
	hashComment  = `(?P<c>(?:^|\s)#[^\n]*)`
	slashComment = `(?P<c>//[^\n]*)`
	quoted       = `(?P<s>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')`
	number       = `(?P<n>\b\d[\w.]*\b)`
)

// rules say what stands out in a language: comments, strings, numbers, words and names. The documents have few and short blocks, so that no library
// that knows hundreds of languages, and makes them ready at each start, is worth its memory.
var rules = map[string]string{
	"sh":     hashComment + `|` + quoted + `|(?P<v>\$\{?\w+\}?|\b[A-Z][A-Z0-9_]+=)|(?m:(?P<k>^(?:\$ )?[\w./-]+))|(?P<n>\s--?[a-zA-Z][\w-]*)`,
	"yaml":   hashComment + `|` + quoted + `|(?P<v>\$\{\w+\})|(?P<k>[\w.-]+:)|` + number,
	"json":   `(?P<k>"(?:\\.|[^"\\])*"\s*:)|` + quoted + `|(?P<n>\b(?:true|false|null|\d[\w.]*)\b)`,
	"toml":   hashComment + `|` + quoted + `|(?m:(?P<k>^\s*\[[^\]\n]*\]|^\s*[\w.]+))|` + number,
	"python": hashComment + `|` + quoted + `|(?P<k>\b(?:from|import|as|def|return|for|in|if|else|print|with|async|await|class|True|False|None|or|and|not)\b)|` + number,
	"js":     slashComment + `|` + quoted + `|(?P<k>\b(?:import|from|const|let|new|await|async|function|return|for|of|if|else|true|false|null)\b)|` + number,
	"go":     slashComment + `|` + quoted + `|(?P<k>\b(?:func|return|var|const|type|package|import|for|range|if|else|struct|nil)\b)|` + number,
	"nginx":  hashComment + `|` + quoted + `|(?P<v>\$\w+)|(?m:(?P<k>^\s*\w+))|` + number,
}

// others are languages that look like one that has rules.
var others = map[string]string{"dockerfile": "nginx", "caddyfile": "nginx", "ini": "toml", "bash": "sh", "ts": "js"}

var compiled = sync.OnceValue(func() map[string]*regexp.Regexp {
	all := map[string]*regexp.Regexp{}
	for language, rule := range rules {
		all[language] = regexp.MustCompile(rule)
	}
	return all
})

// highlight gives the HTML of code, with what stands out in elements with the classes of rules.
func highlight(language, code string) string {
	if other, ok := others[language]; ok {
		language = other
	}
	rule, ok := compiled()[language]
	if !ok {
		return html.EscapeString(code)
	}
	var b strings.Builder
	done := 0
	for _, m := range rule.FindAllStringSubmatchIndex(code, -1) {
		for group := 1; group < len(m)/2; group++ {
			if from, to := m[2*group], m[2*group+1]; from >= 0 && to > from {
				b.WriteString(html.EscapeString(code[done:from]))
				b.WriteString(`<span class="` + rule.SubexpNames()[group] + `">` + html.EscapeString(code[from:to]) + `</span>`)
				done = to
			}
		}
	}
	b.WriteString(html.EscapeString(code[done:]))
	return b.String()
}
