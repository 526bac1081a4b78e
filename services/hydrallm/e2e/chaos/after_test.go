//go:build e2e

package chaos

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
)

// calls counts the upstream calls of each question from number first on.
func (x *distributed) calls(first int) map[int]int {
	calls := map[int]int{}
	for _, r := range x.upstream.Requests() {
		if n := numberOf(r); n >= first {
			calls[n]++
		}
	}
	return calls
}

// checkSessions waits until each session has what its client said and heard, in order and once. Of a question that got no whole answer it may have a
// part of that, and what was refused it may lack.
func (x *distributed) checkSessions(t *testing.T, results []result) {
	t.Helper()
	talks := map[string][]result{}
	for _, r := range results {
		if r.session != "" {
			talks[r.session] = append(talks[r.session], r)
		}
	}
	for session, talk := range talks {
		var wrong differs
		await.True(t, func() bool {
			body, ok := x.admin(t, x.fronts[1], "/sessions/"+session+"/messages")
			if !ok { // there is no session when nothing of it came through
				body = "[]"
			}
			wrong.error = compare(gjson.Parse(body).Array(), talk)
			return wrong.error == nil
		}, session, &wrong)
	}
}

// differs is the last error of several looks.
type differs struct{ error }

func (d *differs) String() string { return fmt.Sprint(d.error) }

// compare says how the stored messages differ from a talk.
func compare(stored []gjson.Result, talk []result) error {
	next := func(role string) (text string, ok bool) {
		if len(stored) == 0 || stored[0].Get("role").Str != role {
			return "", false
		}
		text = stored[0].Get("content").Str
		stored = stored[1:]
		return text, true
	}
	for _, r := range talk {
		said := fmt.Sprintf("q%d", r.n)
		if len(stored) > 0 && stored[0].Get("content").Str != said && r.outcome != complete {
			continue // it never got so far
		}
		if text, ok := next("user"); !ok || text != said {
			return fmt.Errorf("%q is stored where %s was said", text, said)
		}
		heard, ok := next("assistant")
		switch {
		case r.outcome == complete && heard != r.answered:
			return fmt.Errorf("%q is stored as the answer to %s", heard, said)
		case ok && !strings.HasPrefix(r.wants(), heard):
			return fmt.Errorf("%q is stored as the broken answer to %s", heard, said)
		}
	}
	if len(stored) > 0 {
		return fmt.Errorf("%d messages too many, the first of which is %s", len(stored), stored[0].Raw)
	}
	return nil
}
