package execute_test

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/sessionheader"
	"hydrallm/shared/openai"
)

const sessionName = "X-Session"

// sessions notes the session headers that upstreams see, in order.
type sessions struct {
	mu   sync.Mutex
	seen []http.Header
	fail string // host of the upstream that answers 500, if any
}

func (s *sessions) handle(w http.ResponseWriter, r *http.Request, n int) {
	s.mu.Lock()
	s.seen = append(s.seen, r.Header.Clone())
	fail := s.fail
	s.mu.Unlock()
	if r.Host == fail {
		status(http.StatusInternalServerError, "{}")(w, r, n)
		return
	}
	reply("x")(w, r, n)
}

// take gives what came since it was asked last: an id per call, "" without a header.
func (s *sessions) take() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.seen {
		ids = append(ids, h.Get(sessionName))
	}
	s.seen = nil
	return ids
}

// withSessions runs a test with two upstreams that want the header.
func withSessions(t *testing.T, test func(w *world, s *sessions)) {
	t.Helper()
	var s sessions
	bubble(t, map[string]handler{"a": s.handle, "b": s.handle}, func(w *world) {
		w.exec.Dialogues = &sessionheader.Registry{}
		test(w, &s)
	}, func(c *execute.Channel) { c.SessionHeader = sessionName })
}

// id asks with these messages and gives the one id that was sent.
func (s *sessions) id(w *world, messages ...string) string {
	w.t.Helper()
	w.run(w.t.Context(), `{"model":"m","messages":[`+strings.Join(messages, ",")+`]}`)
	ids := s.take()
	require.Len(w.t, ids, 1)
	return ids[0]
}

func says(role, text string) string { return `{"role":"` + role + `","content":"` + text + `"}` }

// Scenario 25, R-204: the id of a dialogue is the same over five turns, whatever its system prompt and the answers in it become.
func TestScenario25FiveTurns(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		var history []string
		seen := map[string]bool{}
		for turn := range 5 {
			history = append(history, says("user", fmt.Sprint("q", turn)))
			seen[s.id(w, append([]string{says("system", fmt.Sprint("prompt of turn ", turn))}, history...)...)] = true
			history = append(history, says("assistant", "not what was answered"))
		}
		require.Len(w.t, seen, 1)
		require.NotContains(w.t, seen, "")
		require.NotContains(w.t, seen, s.id(w, says("user", "another")))
	})
}

// Scenario 25, R-210: both providers of a failover get the same id.
func TestScenario25Failover(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		first := s.id(w, says("user", "q"))
		require.Regexp(w.t, "^[0-9a-f]{32,64}$", first)
		s.fail = "a"
		w.run(w.t.Context(), `{"model":"m","messages":[`+says("user", "q")+","+says("assistant", "x")+","+says("user", "r")+`]}`)
		require.Equal(w.t, []string{first, first}, s.take())
	})
}

// a provider without a session header gets none.
func TestScenario25OnlyWhereItIsWanted(t *testing.T) {
	t.Parallel()
	var s sessions
	bubble(t, map[string]handler{"a": s.handle}, func(w *world) {
		w.exec.Dialogues = &sessionheader.Registry{}
		require.Empty(w.t, s.id(w, says("user", "q")))
	})
}

// patched gives the chain of the first channel with a patch.
func (w *world) patched(patch string) {
	w.t.Helper()
	p, err := openai.CompilePatch([]byte(patch))
	require.NoError(w.t, err)
	w.plan.chain = execute.NewChain([]execute.Link{{Channel: w.plan.chain.Links[0].Channel, Model: "real-a", Patch: p}})
}

// where a patch leaves no messages there is no header, not even a static one of that name.
func TestScenario25NoMessages(t *testing.T) {
	t.Parallel()
	var s sessions
	bubble(t, map[string]handler{"a": s.handle}, func(w *world) {
		w.exec.Dialogues = &sessionheader.Registry{}
		w.patched(`{"messages":[]}`)
		require.Empty(w.t, s.id(w, says("user", "q")))
	}, func(c *execute.Channel) {
		c.SessionHeader, c.Header = sessionName, http.Header{sessionName: {"static"}}
	})
}

// Scenario 25, R-205: of 1001 sessions the one that was used least lately is forgotten.
func TestScenario25ManySessions(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		old, used := s.id(w, says("user", "old")), s.id(w, says("user", "used"))
		seen := map[string]bool{old: true, used: true}
		for i := range sessionheader.MaxSessions - 1 {
			if i == sessionheader.MaxSessions/2 {
				require.Equal(w.t, used, s.id(w, says("user", "used"), says("assistant", "a")))
			}
			seen[s.id(w, says("user", fmt.Sprint("q", i)))] = true
		}
		require.Len(w.t, seen, sessionheader.MaxSessions+1)
		require.Equal(w.t, used, s.id(w, says("user", "used"), says("assistant", "a"), says("user", "b")))
		require.NotEqual(w.t, old, s.id(w, says("user", "old"), says("assistant", "a"), says("user", "b")))
	})
}

// a session is kept for six hours after its last use.
func TestScenario25Expiry(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		first := s.id(w, says("user", "q"))
		<-time.After(5*time.Hour + 59*time.Minute)
		require.Equal(w.t, first, s.id(w, says("user", "q"), says("assistant", "a")))
		<-time.After(5*time.Hour + 59*time.Minute)
		require.Equal(w.t, first, s.id(w, says("user", "q"), says("assistant", "a"), says("user", "r")))
		<-time.After(6*time.Hour + time.Minute)
		require.NotEqual(w.t, first, s.id(w, says("user", "q"), says("assistant", "a"), says("user", "r"), says("assistant", "b")))
	})
}

// Scenario 25, R-207: a hundred first turns at the same time agree.
func TestScenario25ParallelFirstTurns(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		var asking sync.WaitGroup
		for i := range 100 {
			asking.Go(func() {
				w.run(w.t.Context(), fmt.Sprintf(`{"model":"m","messages":[%s,%s]}`, says("user", "q"), says("assistant", strconv.Itoa(i))))
			})
		}
		asking.Wait()
		seen := map[string]bool{}
		for _, id := range s.take() {
			seen[id] = true
		}
		require.Len(w.t, seen, 1)
		require.NotContains(w.t, seen, "")
	})
}

// what is put before the last question in one turn and is gone in the next, and other spellings of a first message with parts.
func TestScenario25ChangedHistories(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		first := s.id(w, says("user", "q"))
		require.Equal(w.t, first, s.id(w, says("user", "q"), says("assistant", "a"), says("system", "web text"), says("user", "r")))
		require.Equal(w.t, first, s.id(w, says("user", "q"), says("assistant", "a"), says("user", "r"), says("assistant", "b"), says("user", "s")))
		require.Equal(w.t, first, s.id(w, `{"content":[{"type":"text","text":"q"}],"role":"user"}`))

		image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`
		parts := s.id(w, `{"role":"user","content":[{"type":"text","text":"q"},`+image+`]}`)
		require.NotEqual(w.t, first, parts)
		require.Equal(w.t, parts, s.id(w, `{"role":"user","content":[{"text":"q","type":"text"},`+image+`]}`, says("assistant", "a"), says("user", "r")))

		cut := s.id(w, says("assistant", "a"), says("user", "r"))
		require.NotEqual(w.t, first, cut, "without its beginning it is another dialogue")
	})
}

// the messages are those of the patched body.
func TestScenario25PatchedMessages(t *testing.T) {
	t.Parallel()
	withSessions(t, func(w *world, s *sessions) {
		chain := w.plan.chain
		w.patched(`{"messages":[` + says("user", "fixed") + `]}`)
		fixed := s.id(w, says("user", "one"))
		require.Equal(w.t, fixed, s.id(w, says("user", "two")))
		w.plan.chain = chain
		require.Equal(w.t, fixed, s.id(w, says("user", "fixed"), says("assistant", "a")))
	})
}
