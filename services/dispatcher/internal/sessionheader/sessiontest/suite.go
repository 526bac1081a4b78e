// Package sessiontest holds the conformance suite of sessionheader.Source.
package sessiontest

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/sessionheader"
)

// Run checks what every sessionheader.Source must do. sources gives n fresh sources that share their sessions; it is asked for one at least.
func Run(t *testing.T, most int, sources func(t *testing.T, n int) []sessionheader.Source) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, []sessionheader.Source){
		"stable while it grows":          growing,
		"different beginnings":           differentBeginnings,
		"same beginning is merged":       merged,
		"edited and enriched":            edited,
		"cut off beginning":              cutOff,
		"no messages":                    noMessages,
		"no user":                        noUser,
		"parallel first turns agree":     parallelFirstTurns,
		"parallel growth agrees":         parallelGrowth,
		"forgetting never mixes":         neverMixes,
		"more sessions than are kept":    manySessions,
		"the id is hex of 128 bits":      idForm,
		"spelling of the first message":  spelling,
		"what a first turn is made of":   firstTurns,
		"first turn with a long history": longHistory,
	} {
		for n := 1; n <= most; n++ {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				t.Parallel()
				check(t, sources(t, n))
			})
		}
	}
}

func id(t *testing.T, s sessionheader.Source, messages string) string {
	t.Helper()
	id, ok := s.ID(t.Context(), []byte(messages))
	require.True(t, ok, messages)
	return id
}

// turns asks the sources in rotation and requires one id for all requests.
func requireOne(t *testing.T, sources []sessionheader.Source, requests ...string) string {
	t.Helper()
	first := id(t, sources[0], requests[0])
	for i, r := range requests[1:] {
		require.Equal(t, first, id(t, sources[(i+1)%len(sources)], r), r)
	}
	return first
}

func user(text string) string      { return `{"role":"user","content":"` + text + `"}` }
func assistant(text string) string { return `{"role":"assistant","content":"` + text + `"}` }
func system(text string) string    { return `{"role":"system","content":"` + text + `"}` }
func list(messages ...string) string {
	return "[" + strings.Join(messages, ",") + "]"
}

// R-204, section 19 scenario 25; the system prompt before the first user message does not count.
func growing(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	requireOne(
		t, s,
		list(system("s1"), user("q1")),
		list(system("another"), user("q1"), assistant("a1"), user("q2")),
		list(user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3")),
		list(system("s"), system("t"), user("q1"), assistant("a1"), user("q2"), assistant("a2"), user("q3"), assistant("a3"), user("q4")),
		list(user("q1")),
	)
}

//
func differentBeginnings(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	seen := map[string]bool{}
	for i := range 50 {
		seen[id(t, s[i%len(s)], list(system("same"), user(fmt.Sprintf("q%d", i))))] = true
	}
	require.Len(t, seen, 50)
}

// an accepted limit.
func merged(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	requireOne(t, s, list(user("q1"), assistant("left"), user("l")), list(user("q1"), assistant("right"), user("r")))
}

// whatever changes after the first message, the branch stays with its session.
func edited(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	requireOne(
		t, s,
		list(user("q1")),
		list(user("q1"), assistant("not what we returned"), user("q2")),
		list(user("q1"), system("web text"), assistant("a1"), user("q2")),
		list(user("q1"), assistant("a1"), user("q2")),
		list(user("q1"), assistant("a1"), user("q2 edited")),
		list(user("q1"), assistant("a1"), user("q2"), assistant("regenerated"), user("q3")),
	)
}

// a history without its first message is a new session, and so is the old one not lost.
func cutOff(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	whole := requireOne(t, s, list(user("q1")), list(user("q1"), assistant("a1"), user("q2")))
	rest := id(t, s[0], list(assistant("a1"), user("q2"), assistant("a2"), user("q3")))
	require.NotEqual(t, whole, rest)
	require.Equal(t, whole, id(t, s[0], list(user("q1"), assistant("a1"), user("q2"))))
}

//
func noMessages(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	for _, messages := range []string{"[]", " [ ] ", "", "null", "{}", `"text"`, "7"} {
		got, ok := s[0].ID(t.Context(), []byte(messages))
		require.False(t, ok, messages)
		require.Empty(t, got, messages)
	}
}

// without a user message the chain starts at the first one.
func noUser(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	only := requireOne(t, s, list(system("s1")), list(system("s1"), assistant("a1")))
	require.NotEqual(t, only, id(t, s[0], list(system("s2"))))
	require.NotEqual(t, only, id(t, s[0], list(system("s1"), user("q1"))))
}

// 100 first turns of one dialogue at the same time have one id.
func parallelFirstTurns(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	requireAgreement(t, s, func(int) string { return list(user("one and the same")) })
}

// also when the first requests that are seen differ behind the first message.
func parallelGrowth(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	requireAgreement(t, s, func(i int) string { return list(user("q1"), assistant(fmt.Sprintf("a%d", i)), user("q2")) })
}

func requireAgreement(t *testing.T, s []sessionheader.Source, request func(i int) string) {
	t.Helper()
	ids := make([]string, 100)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() { ids[i], _ = s[i%len(s)].ID(t.Context(), []byte(request(i))) })
	}
	wg.Wait()
	for _, got := range ids {
		require.NotEmpty(t, got)
		require.Equal(t, ids[0], got)
	}
}

// Section 19 scenario 25: 1001 sessions, all different, in parallel.
func neverMixes(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	ids := make([]string, sessionheader.MaxSessions+1)
	var wg sync.WaitGroup
	for i := range 11 {
		wg.Go(func() {
			for j := i; j < len(ids); j += 11 {
				ids[j], _ = s[i%len(s)].ID(t.Context(), []byte(list(user(fmt.Sprintf("crowd %d", j)))))
			}
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, got := range ids {
		seen[got] = true
	}
	require.Len(t, seen, len(ids))
}

// A session that was used lately is kept however many others begin.
func manySessions(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	first := id(t, s[0], list(user("kept")))
	for i := range sessionheader.MaxSessions {
		id(t, s[0], list(user(fmt.Sprintf("other %d", i))))
		if i%100 == 0 {
			require.Equal(t, first, id(t, s[0], list(user("kept"), assistant(strconv.Itoa(i)))))
		}
	}
	require.Equal(t, first, id(t, s[0], list(user("kept"), assistant("end"))))
}

//
func idForm(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	require.Regexp(t, "^[0-9a-f]{32}$", id(t, s[0], list(user("readable"))))
}

// the same first message in the spellings of different clients.
func spelling(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	same := []string{
		`[{"role":"user","content":"Hé"}]`,
		"[ {\n \"content\" : \"H\\u00e9\", \"role\" : \"user\" } ]",
		`[{"role":"user","content":[{"type":"text","text":"Hé"}]}]`,
		`[{"role":"user","content":[{"text":"Hé","type":"text","cache_control":{"type":"ephemeral"}}]}]`,
		`[{"role":"user","content":"Hé","name":null,"tool_calls":[],"reasoning_content":"hm","id":7}]`,
	}
	first := requireOne(t, s, same...)
	for _, other := range []string{
		`[{"role":"user","content":"He"}]`,
		`[{"role":"user","content":"Hé","name":"n"}]`,
		`[{"role":"user","content":[{"type":"text","text":"Hé"},{"type":"text","text":"Hé"}]}]`,
		`[{"role":"user","content":[{"type":"text","text":"Hé","lang":"fr"}]}]`,
		`[{"role":"user","content":[{"type":"input_text","text":"Hé"}]}]`,
		`[{"role":"user","content":["Hé"]}]`,
		`[{"role":"user","content":{"text":"Hé","type":"text"}}]`,
		`[{"role":"user"}]`,
	} {
		require.NotEqual(t, first, id(t, s[0], other), other)
	}
	requireOne(
		t, s,
		`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA==","detail":"low"}},{"type":"text","text":"q"}]}]`,
		`[{"content":[{"image_url":{"detail":"low","url":"data:image/png;base64,AA=="},"type":"image_url"},{"text":"q","type":"text","cache_control":{}}],"role":"user"}]`,
	)
}

// what makes the id of a session that is first seen with a history.
func firstTurns(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	call := func(rest string) string {
		return list(user("q1"), `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}`+rest+`}]}`)
	}
	seen := map[string]bool{}
	add := func(messages string) {
		got := id(t, s[0], strings.ReplaceAll(messages, "q1", fmt.Sprintf("q%d", len(seen)))) // a new session each
		require.False(t, seen[got])
		seen[got] = true
	}
	add(list(user("q1")))
	add(call(``))
	add(call(`,"index":0`))
	add(list(user("q1"), `{"role":"tool","tool_call_id":"c1","content":"r"}`))
	add(list(user("q1"), `7`, `null`, `[]`))
}

// The first request of a session may carry thousands of messages.
func longHistory(t *testing.T, s []sessionheader.Source) {
	t.Helper()
	messages := []string{user("q1")}
	for i := range 3000 {
		messages = append(messages, assistant(strconv.Itoa(i)))
	}
	requireOne(t, s, list(messages...), list(messages[:2]...), list(messages[:2500]...))
}
