package config

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the page instead of comparing with it")

// block is a part of the page that is made from the declarations of the settings.
var block = regexp.MustCompile(`(?s)<!-- settings: ([a-z]+) -->\n.*?<!-- end of settings -->`)

// the tables of the page are what the settings declare. "make docs" writes them.
func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	all := newDocument("", "", newFindings("")).settings()
	blocks := map[string]string{
		"all": allDefaults(all), "expanded": strings.Join(expandedKeys("", all), ", ") + "\n", "environment": variables(all), "presets": presetTable(),
	}
	for _, s := range all {
		blocks[s.key] = table(s)
	}
	written := map[string]bool{}
	page := block.ReplaceAllStringFunc(string(text), func(old string) string {
		name := block.FindStringSubmatch(old)[1]
		require.Contains(t, blocks, name)
		written[name] = true
		return "<!-- settings: " + name + " -->\n" + blocks[name] + "<!-- end of settings -->"
	})
	for name := range blocks {
		require.True(t, written[name], "the page has no place for %s", name)
	}
	if *update {
		require.NoError(t, os.WriteFile("../../docs/configuration.md", []byte(page), 0o600))
		return
	}
	is, want := strings.Split(string(text), "\n"), strings.Split(page, "\n")
	for i := range min(len(is), len(want)) {
		require.Equal(t, want[i], is[i], "line %d of docs/configuration.md is stale: run make docs", i+1)
	}
	require.Len(t, is, len(want))
}

// table describes the keys of a section.
func table(section setting) string {
	var b strings.Builder
	b.WriteString(section.doc + "\n")
	b.WriteString("\n| key | type | default | meaning |\n|---|---|---|---|\n")
	rows(&b, "", section.kind.fields)
	return b.String()
}

func rows(b *strings.Builder, prefix string, all []setting) {
	for _, s := range all {
		meaning := s.doc
		if s.isLive {
			meaning += ". *Live*"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", prefix+s.key, s.kind.name, shownDefault(s), strings.TrimSpace(meaning))
		below := prefix + s.key + "."
		if s.kind.list {
			below = prefix + s.key + "[]."
		}
		rows(b, below, s.kind.fields)
	}
}

func shownDefault(s setting) string {
	switch {
	case s.required:
		return "required"
	case s.otherwise != "":
		return s.otherwise
	case s.byDefault != "":
		return "`" + s.byDefault + "`"
	case s.kind.fields != nil || s.kind.name != "text" && s.kind.name != "address" && s.kind.name != "path" && s.kind.name != "`host:port`":
		return ""
	default:
		return "`\"\"`"
	}
}

// allDefaults is a file that changes nothing.
func allDefaults(all []setting) string {
	var b strings.Builder
	b.WriteString("```yaml\n")
	for _, s := range all {
		if s.kind.list {
			fmt.Fprintf(&b, "%s: []\n\n", s.key)
			continue
		}
		b.WriteString(s.key + ":\n")
		defaultLines(&b, "  ", s.kind.fields)
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n") + "\n```\n"
}

func defaultLines(b *strings.Builder, indent string, all []setting) {
	for _, s := range all {
		switch {
		case s.byDefault == "" && s.kind.fields != nil:
			fmt.Fprintf(b, "%s%s:\n", indent, s.key)
			defaultLines(b, indent+"  ", s.kind.fields)
		case s.byDefault == "":
			fmt.Fprintf(b, "%s%s: \"\"\n", indent, s.key)
		default:
			fmt.Fprintf(b, "%s%s: %s\n", indent, s.key, s.byDefault)
		}
	}
}

// expandedKeys names the keys in which ${NAME} is replaced.
func expandedKeys(prefix string, all []setting) []string {
	var list []string
	for _, s := range all {
		path := prefix + s.key
		if s.kind.expands {
			list = append(list, "`"+path+"`")
		}
		if s.kind.list {
			path += "[]"
		}
		list = append(list, expandedKeys(path+".", s.kind.fields)...)
	}
	return list
}

// variables are those of a start without a file that belong to no provider.
func variables(all []setting) string {
	var b strings.Builder
	b.WriteString("| variable | key |\n|---|---|\n")
	var walk func(prefix string, all []setting)
	walk = func(prefix string, all []setting) {
		for _, s := range all {
			if s.variable != "" {
				fmt.Fprintf(&b, "| `%s` | `%s` |\n", s.variable, prefix+s.key)
			}
			if !s.kind.list {
				walk(prefix+s.key+".", s.kind.fields)
			}
		}
	}
	walk("", all)
	return b.String()
}

// presetTable describes what the well-known ids bring along.
func presetTable() string {
	var b strings.Builder
	b.WriteString("| id | dialect | address | key |\n|---|---|---|---|\n")
	for _, id := range presetIDs() {
		p := presets[id]
		addresses := []string{"`" + p.urls[p.dialect] + "`"}
		for _, dialect := range sortedKeys(p.urls) {
			if p.urls[dialect] != p.urls[p.dialect] {
				addresses = append(addresses, "with `dialect: "+dialect+"`, `"+p.urls[dialect]+"`")
			}
		}
		credential := "none"
		switch {
		case p.pooled:
			credential = "pool"
		case p.key != "":
			credential = "`" + p.key + "`, which it ignores"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s |\n", id, p.dialect, strings.Join(addresses, "; "), credential)
	}
	return b.String()
}

// which word is nearest is no accident.
func TestSuggestions(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"prot": "port", "hosts": "host", "Debug": "debug", "client_key": "client_keys", "max_body_byte": "max_body_bytes",
		"colour": "", "x": "", "": "", "drain": "", "queue_time_out": "queue_timeout",
	} {
		var s Server
		require.Equal(t, want, nearest(word, names(s.settings())), word)
	}
	require.ElementsMatch(t, sortedKeys(presets), presetIDs())
}
