package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// threeProviders is a gateway with the models groq, gemini and cerebras, each of another provider that says who it is, after the words.
func threeProviders(t *testing.T, words string) (x running, providers map[string]*fakellm.Server) {
	t.Helper()
	providers = map[string]*fakellm.Server{}
	text := [3]string{"providers:", "upstreams:", "models:"}
	for _, name := range []string{"groq", "gemini", "cerebras"} {
		fake := fakellm.Start(t)
		fake.Handle(fakellm.Talk(words + "I am " + name + "."))
		providers[name] = fake
		text[0] += fmt.Sprintf("\n  - {id: %s, url: %q, key: key-of-a-provider}", name, fake.URL()+"/v1")
		text[1] += fmt.Sprintf("\n  - {id: u-%s, provider: %s, model: real}", name, name)
		text[2] += fmt.Sprintf("\n  - {name: %s, upstreams: [u-%s]}", name, name)
	}
	return serve(t, configured(t, freeport.Port(t), strings.Join(text[:], "\n")+"\nrouting: {final_fallback: \"\", aliases: {}}\n")), providers
}

// talk gives what the last request to a provider says, but for the block of the system.
func talkOf(s *fakellm.Server) (list []string) {
	for _, m := range gjson.GetBytes(last(s).Body, "messages").Array() {
		if text := m.Get("content").Str; !strings.HasPrefix(text, "[SYSTEM CONTEXT]") {
			list = append(list, text)
		}
	}
	return list
}

// Scenario 20, R-306: a session over three providers keeps its history.
func TestScenario20ThreeProviders(t *testing.T) {
	t.Parallel()
	x, providers := threeProviders(t, "")
	var want []string
	for turn, name := range []string{"groq", "gemini", "cerebras", "groq", "cerebras", "gemini"} {
		question := fmt.Sprintf("question %d", turn)
		want = append(want, question)
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"session_id":"s","messages":[{"role":"user","content":%q}]}`, name, question))
		require.Equal(t, http.StatusOK, status, answer)
		require.Equal(t, want, talkOf(providers[name]))
		want = append(want, "I am "+name+".")
	}
}

// Scenario 20, R-307 to R-310: forty long turns are compacted more than once. The prompt has the summary, which knows what was said at first and what was said later,
// and the newest messages as they were.
func TestScenario20FortyLongTurns(t *testing.T) {
	t.Parallel()
	x, providers := threeProviders(t, strings.Repeat("The river goes where it has always gone, and nobody asks it why. ", 12))
	names := []string{"groq", "gemini", "cerebras"}
	long := strings.Repeat("Long words fill the page and nothing is meant by them. ", 14)
	turn := func(n int) []string {
		question := fmt.Sprintf("Turn %d. %s", n, long)
		switch n {
		case 1:
			question += "The access code of gate 7 is KX-4711."
		case 25:
			question += "The deadline is 2031-05-17."
		}
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"session_id":"s","messages":[{"role":"user","content":%q}]}`, names[n%3], question))
		require.Equal(t, http.StatusOK, status, answer)
		return talkOf(providers[names[n%3]])
	}
	compactions, size := 0, 0
	for n := range 40 {
		talk := turn(n)
		if len(talk) < size {
			compactions++
		}
		size = len(talk)
	}
	n := 40
	for ; compactions < 2 && n < 400; n++ { // they are behind the turns
		talk := turn(n)
		if len(talk) < size {
			compactions++
		}
		size = len(talk)
	}
	require.GreaterOrEqual(t, compactions, 2)
	talk := turn(n)
	require.True(t, strings.HasPrefix(talk[0], "[CONVERSATION SUMMARY]"))
	require.Contains(t, talk[0], "KX-4711")
	require.Contains(t, talk[0], "2031-05-17")
	require.Greater(t, len(talk), 4)
	for i, text := range talk[len(talk)-5:] { // two whole turns and the question
		if at := n - 2 + i/2; i%2 == 0 {
			require.True(t, strings.HasPrefix(text, fmt.Sprintf("Turn %d. ", at)), text)
		} else {
			require.True(t, strings.HasSuffix(text, "I am "+names[at%3]+"."), text)
		}
	}
}
