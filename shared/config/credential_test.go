package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/config"
)

// Keys come without what was copied along with them; what may be wrong with one is said, and nothing of it is shown..
func TestKeysThatWereCopied(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		value string // of a variable
		want  []config.Secret
		warn  []string
	}{
		"a list":                 {"hidden-a, hidden-b", []config.Secret{"hidden-a", "hidden-b"}, []string{}},
		"quotes around each":     {`"hidden-a","hidden-b"`, []config.Secret{"hidden-a", "hidden-b"}, []string{"[0]: the quotes around it are left out", "[1]: the quotes around it are left out"}},
		"quotes around all":      {`"hidden-a,hidden-b"`, []config.Secret{"hidden-a", "hidden-b"}, []string{": the quotes around it are left out"}},
		"single quotes":          {"'hidden-a'", []config.Secret{"hidden-a"}, []string{": the quotes around it are left out"}},
		"typographic quotes":     {"“hidden-a”,’hidden-b", []config.Secret{"hidden-a", "’hidden-b"}, []string{"[0]: the quotes around it are left out", "[1]: holds a character that is not ASCII"}},
		"JSON within quotes":     {`'["hidden-a","hidden-b"]'`, []config.Secret{"hidden-a", "hidden-b"}, []string{": the quotes around it are left out"}},
		"a byte order mark":      {"\ufeffhidden-a,hidden-b", []config.Secret{"hidden-a", "hidden-b"}, []string{}},
		"before JSON":            {"\ufeff[\"hidden-a\"]", []config.Secret{"hidden-a"}, []string{}},
		"a zero-width space":     {"hidden-a,\u200bhid\u200dden-b\u2060", []config.Secret{"hidden-a", "hidden-b"}, []string{"[1]: characters that can't be seen are left out"}},
		"a line each":            {"hidden-a\r\nhidden-b,\n\nhidden-c\n", []config.Secret{"hidden-a", "hidden-b", "hidden-c"}, []string{": line ends separate its entries: put commas between them"}},
		"a space each":           {"hidden-a hidden-b", []config.Secret{"hidden-a hidden-b"}, []string{"[0]: holds white space: several keys have commas between them"}},
		"a semicolon each":       {"hidden-a;hidden-b", []config.Secret{"hidden-a;hidden-b"}, []string{"[0]: holds a comma or a semicolon: several keys are a list"}},
		"not ASCII":              {"hiddеn-a", []config.Secret{"hiddеn-a"}, []string{"[0]: holds a character that is not ASCII"}}, // a Cyrillic letter
		"a variable of a shell":  {"$HIDDEN_KEY", []config.Secret{"$HIDDEN_KEY"}, []string{`[0]: looks like a variable: write "${NAME}"`}},
		"of another shell":       {"%HIDDEN_KEY%", []config.Secret{"%HIDDEN_KEY%"}, []string{`[0]: looks like a variable: write "${NAME}"`}},
		"of another program":     {"os.environ/HIDDEN_KEY", []config.Secret{"os.environ/HIDDEN_KEY"}, []string{`[0]: looks like a variable in the words of another program: write "${NAME}"`}},
		"a header":               {"Bearer hidden-a", []config.Secret{"Bearer hidden-a"}, []string{"[0]: begins like a header, which the gateway makes itself: write the key alone"}},
		"a comment":              {"hidden-a # of the team", []config.Secret{"hidden-a # of the team"}, []string{"[0]: holds a comment: put it outside of the quotes, or into a line of its own"}},
		"an assignment":          {"GROQ_API_KEY=hidden-a", []config.Secret{"GROQ_API_KEY=hidden-a"}, []string{"[0]: begins with the name of a variable: write what is behind the ="}},
		"a placeholder":          {"<your API key>,sk-...", []config.Secret{"<your API key>", "sk-..."}, []string{"[0]: looks like a placeholder", "[1]: looks like a placeholder"}},
		"a dollar inside":        {"hidden$a", []config.Secret{"hidden$a"}, []string{}},
		"a key that ends with =": {"aGlkZGVuLWE=", []config.Secret{"aGlkZGVuLWE="}, []string{}},
		"nothing but quotes":     {`"",k`, []config.Secret{"k"}, []string{"[0]: the quotes around it are left out", "[0]: empty, ignored"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, text := range []string{`providers: [{id: groq, keys: "${LIST}"}]`, "log: {}\nserver: {host: localhost, client_keys: \"${LIST}\"}"} {
				c, warnings, err := parse(map[string]string{"LIST": tc.value}, text)
				require.NoError(t, err)
				got, path := c.Server.ClientKeys, "server.client_keys"
				if len(c.Providers) > 0 {
					got, path = nil, "providers[0].keys"
					for _, k := range c.Providers[0].Keys {
						got = append(got, k.Value)
					}
				}
				require.ElementsMatch(t, tc.want, got)
				list := lines(warnings)
				for i := range list {
					list[i] = strings.TrimPrefix(list[i][len("config.yaml:1: "):], path)
				}
				require.Equal(t, tc.warn, list)
				require.NotContains(t, strings.ToLower(strings.Join(list, "\n")), "hidden")
			}
		})
	}
	c, warnings, err := parse(nil, `{providers: [{id: groq, key: "'hidden-a'"}], server: {host: localhost, admin_key: "Bearer hidden-b"}}`)
	require.NoError(t, err)
	require.Equal(t, config.Secret("hidden-a"), c.Providers[0].Keys[0].Value)
	require.Len(t, warnings, 2)
}

// ${NAME:-text} as in shells and compose files.
func TestDefaultsOfVariables(t *testing.T) {
	t.Parallel()
	vars := map[string]string{"SET": "set", "EMPTY": ""}
	for text, want := range map[string]config.Secret{
		"${SET:-x}": "set", "${UNSET:-x}": "x", "${EMPTY:-x}": "x", "${EMPTY}": "", "${UNSET:-}": "", "a-${UNSET:-b:-c}-${SET}": "a-b:-c-set", "${UNSET:-$SET}": "$SET",
	} {
		c, _, err := parse(vars, `server: {host: localhost, admin_key: "`+text+`"}`)
		require.NoError(t, err, text)
		require.Equal(t, want, c.Server.AdminKey, text)
	}
}

// Whole numbers as Helm writes them; keys and names that look like numbers stay text.
func TestScientificNotation(t *testing.T) {
	t.Parallel()
	c := sound(t, `
server: {max_body_bytes: 3.3554432e+07, port: 8e3}
sessions: {max_sessions: 1E+06}
providers: [{id: p, url: http://h, key: 1e5, max_concurrency: 2e0}]
upstreams: [{id: 1, provider: p, model: 4.10}]
models: [{name: 1e3, upstreams: [1]}]
`)
	require.Equal(t, 33554432, c.Server.MaxBodyBytes)
	require.Equal(t, 8000, c.Server.Port)
	require.Equal(t, 1_000_000, c.Sessions.MaxSessions)
	require.Equal(t, 2, c.Providers[0].Limit)
	require.Equal(t, config.Secret("1e5"), c.Providers[0].Keys[0].Value)
	require.Equal(t, "4.10", c.Upstreams[0].Model)
	require.Equal(t, "1e3", c.Models[0].Name)
}
