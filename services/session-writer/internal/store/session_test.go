package store

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

const owner = "k:0123456789abcdef"

func user(text string) string { return `{"role":"user","content":"` + text + `"}` }

func said(text string) string { return `{"role":"assistant","content":"` + text + `"}` }

// ask begins a turn that saves one message, and gives the bodies of the history.
func ask(t *testing.T, s *Store, session, rid, text string, pending ...contract.Turn) []string {
	t.Helper()
	history, err := asked(t, s, owner, session, rid, text, pending...)
	require.NoError(t, err)
	return history
}

func asked(t *testing.T, s *Store, principal, session, rid, text string, pending ...contract.Turn) (bodies []string, err error) {
	t.Helper()
	a := Ask{Session: session, Request: rid, Principal: principal, Surface: contract.SurfaceChat, At: time.Now(), Pending: pending}
	err = s.BeginTurn(t.Context(), a, func(history []Message) []Message {
		for _, m := range history {
			bodies = append(bodies, m.Body)
		}
		return []Message{NewMessage(contract.Message{Body: []byte(user(text))})}
	})
	return bodies, err
}

func answered(session, rid, text string) contract.Turn {
	return contract.Turn{
		Session: session, RequestID: rid, Principal: owner, Surface: contract.SurfaceChat, Messages: []string{said(text)}, Model: "llama", Provider: "groq",
		KeyIndex: 2, Tokens: 13, LatencyMS: 250, At: time.Now(), Kind: contract.TurnAnswered,
	}
}

func apply(t *testing.T, s *Store, turns ...contract.Turn) {
	t.Helper()
	require.NoError(t, s.ApplyTurns(t.Context(), turns))
}

func messagesOf(t *testing.T, s *Store, session string) (list []query.Message) {
	t.Helper()
	for after := ""; ; {
		page, err := s.Messages(t.Context(), session, after)
		require.NoError(t, err)
		list = append(list, page.Messages...)
		if !page.More {
			return list
		}
		after = list[len(list)-1].ID
	}
}

// the history of a turn are the turns before it, whoever answered, and never the turn itself.
func TestHistoryGrowsByTurns(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		require.Empty(t, ask(t, s, "a", "r1", "one"))
		apply(t, s, answered("a", "r1", "first"))
		require.Equal(t, []string{user("one"), said("first")}, ask(t, s, "a", "r2", "two"))
		require.Empty(t, ask(t, s, "b", "r3", "other"), "sessions are apart")
		other := answered("a", "r2", "second")
		other.Provider, other.Model = "gemini", "flash"
		apply(t, s, other)
		require.Equal(t, []string{user("one"), said("first"), user("two"), said("second")}, ask(t, s, "a", "r4", "three"))

		got, err := s.Session(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, [...]any{"one", int64(5), "flash", "gemini", owner}, [...]any{got.Title, got.MessageCount, got.LastModel, got.LastProvider, got.Owner})
		list := messagesOf(t, s, "a")
		require.Len(t, list, 5)
		require.Equal(t, query.MessageUnanswered, list[4].State)
		require.JSONEq(t, `{"provider":"groq","model":"llama","key_index":2,"tokens":13,"latency_ms":250}`, string(list[1].Parts[1].Data))
		require.Equal(t, `{"text":"first"}`, string(list[1].Parts[0].Data))
		for i, m := range list {
			require.True(t, strings.HasPrefix(m.ID, "msg_"))
			require.Len(t, m.ID, 30)
			require.True(t, i == 0 || list[i-1].ID < m.ID)
		}
	})
}

// Bodies come back byte for byte.
func TestBodiesAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	odd := `{ "role":"assistant", "content":null,"x_vendor":{"b":1.0,"a":1e2}, "tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"n\":1.0, \"<>&\u2028\":\"\ud800\u0000\"}"}}],"reasoning_content":"\u003ch\u003e"}`
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "\\u0000 <b> \\ud83d\\ude00")
		f := answered("a", "r1", "")
		f.Messages = []string{odd}
		apply(t, s, f)
		require.Equal(t, []string{user("\\u0000 <b> \\ud83d\\ude00"), odd}, ask(t, s, "a", "r2", "two"))
		require.Len(t, messagesOf(t, s, "a"), 3)
	})
}

// what is in one batch is stored as if each fact came alone: answers that broke off before whole ones, answers again, questions that come as facts, of
// sessions that are there, are not, or were deleted.
func TestBatchIsStoredAsItsFacts(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		var turns []contract.Turn
		sessions := []string{"a", "b", "c"}
		for _, session := range sessions {
			ask(t, s, session, "r1", "one")
			ask(t, s, session, "r2", "two")
			partial := answered(session, "r1", "fir")
			partial.Kind = contract.TurnFailed
			turns = append(turns, partial, answered(session, "r1", "first"), answered(session, "r1", "another"), answered(session, "r2", "second"),
				answered(session, "unknown", "to nobody"))
		}
		ask(t, s, "gone", "r1", "one")
		require.NoError(t, s.DeleteSession(t.Context(), "gone"))
		question := answered("new", "r1", "")
		question.Kind, question.Messages = contract.TurnAsked, []string{user("one")}
		turns = append(turns, answered("gone", "r1", "late"), question, answered("new", "r1", "first"), answered("never", "r1", "first"))
		apply(t, s, turns...)

		for _, session := range sessions {
			want := []string{user("one"), said("first"), user("two"), said("second")}
			got, err := s.Session(t.Context(), session)
			require.NoError(t, err)
			require.EqualValues(t, len(want), got.MessageCount)
			var tokens, sum int64
			require.NoError(t, s.read.GetContext(t.Context(), &tokens, s.read.Rebind(`SELECT context_tokens FROM sessions WHERE id = ?`), session))
			require.NoError(t, s.read.GetContext(t.Context(), &sum, s.read.Rebind(`SELECT SUM(tokens) FROM messages WHERE session_id = ?`), session))
			require.Equal(t, sum, tokens)
			require.Equal(t, want, ask(t, s, session, "r3", "three"))
		}
		require.Equal(t, []string{user("one"), said("first")}, ask(t, s, "new", "r2", "two"))
		for _, session := range []string{"gone", "never"} {
			_, err := s.Session(t.Context(), session)
			require.ErrorIs(t, err, ErrNoSession)
		}
		require.Equal(t, 7, countRows(t, s, "parts"), "each whole answer has one")
	})
}

// Facts change nothing when they come again, from several writers, in any order, with the question's transaction.
func TestTurnsAreStoredOnce(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		var facts []contract.Turn
		for i := range 8 {
			rid := fmt.Sprintf("r%d", i)
			ask(t, s, "a", rid, rid)
			ask(t, s, "b", rid, rid)
			facts = append(facts, answered("a", rid, "to "+rid), answered("b", rid, "to "+rid))
		}
		var wg sync.WaitGroup
		for w := range 6 {
			wg.Go(func() {
				mine := append(facts[w*2:len(facts):len(facts)], facts[:w*2]...)
				require.NoError(t, s.ApplyTurns(t.Context(), mine))
			})
		}
		wg.Wait()
		for _, session := range []string{"a", "b"} {
			var want []string
			for i := range 8 {
				want = append(want, user(fmt.Sprintf("r%d", i)), said(fmt.Sprintf("to r%d", i)))
			}
			require.Equal(t, want, ask(t, s, session, "last", "?", facts...))
			require.Equal(t, want, ask(t, s, session, "last", "again"), "the same request")
			require.Len(t, messagesOf(t, s, session), 17)
			one, err := s.Session(t.Context(), session)
			require.NoError(t, err)
			require.Equal(t, int64(17), one.MessageCount)
		}
	})
}

// turns at the same time, of one session and many, stay whole and lose nothing.
func TestTurnsAtTheSameTime(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				rid := fmt.Sprintf("r%d", i)
				_, err := asked(t, s, owner, "one", rid, "ask "+rid)
				require.NoError(t, err)
				require.NoError(t, s.ApplyTurns(t.Context(), []contract.Turn{answered("one", rid, "answer "+rid)}))
			})
		}
		wg.Wait()
		history := ask(t, s, "one", "last", "?")
		require.Len(t, history, 100)
		for i := 0; i < len(history); i += 2 {
			rid := strings.TrimSuffix(strings.TrimPrefix(history[i], `{"role":"user","content":"ask `), `"}`)
			require.Equal(t, said("answer "+rid), history[i+1], "each question beside its answer")
		}
	})
}

// what broke off is kept and shown, and no part of later prompts, unless the whole answer comes after all.
func TestBrokenAnswers(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "one")
		half := answered("a", "r1", "hal")
		half.Kind = contract.TurnFailed
		apply(t, s, half, half)
		require.Empty(t, ask(t, s, "a", "r2", "two"))
		list := messagesOf(t, s, "a")
		require.Equal(t, [...]string{query.MessageUnanswered, query.MessagePartial}, [...]string{list[0].State, list[1].State})

		apply(t, s, answered("a", "r1", "whole"), half)
		require.Equal(t, []string{user("one"), said("whole")}, ask(t, s, "a", "r2", "two"))
		one, err := s.Session(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, int64(3), one.MessageCount)
	})
}

// A question that could not be saved is saved later, in the order of the facts, if the session is the asker's.
func TestQuestionsAsFacts(t *testing.T) {
	t.Parallel()
	question := func(principal, rid, text string) contract.Turn {
		return contract.Turn{
			Session: "a", RequestID: rid, Principal: principal, Surface: contract.SurfaceChat, Messages: []string{user(text)}, At: time.Now(), Kind: contract.TurnAsked,
		}
	}
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		facts := []contract.Turn{question(owner, "r1", "one"), answered("a", "r1", "first"), question("k:other", "r2", "not mine"), answered("a", "r2", "not yours")}
		require.NoError(t, s.CatchUp(t.Context(), "a", facts, 7))
		applied, err := s.Applied(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, uint64(7), applied)
		require.NoError(t, s.CatchUp(t.Context(), "a", facts, 5))
		applied, err = s.Applied(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, uint64(7), applied, "it never goes back")
		require.Equal(t, []string{user("one"), said("first")}, ask(t, s, "a", "r3", "two"))
		bad := question(owner, "r4", "")
		bad.Messages = []string{"no json"}
		apply(t, s, bad)
	})
}

// A session belongs to who used it first; to others it does not exist. The admin sees all.
func TestSessionsBelongToWhoMadeThem(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "one")
		_, err := asked(t, s, "k:other", "a", "r2", "two")
		require.ErrorIs(t, err, ErrNoSession)
		_, err = s.Fork(t.Context(), Fork{Source: "a", Principal: "k:other"})
		require.ErrorIs(t, err, ErrNoSession)
		require.Len(t, messagesOf(t, s, "a"), 1)
		_, err = asked(t, s, contract.PrincipalAdmin, "a", "r3", "three")
		require.NoError(t, err)

		id, err := s.NewSession(t.Context())
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(id, "ses_"))
		_, err = asked(t, s, "k:first", id, "r4", "four")
		require.NoError(t, err)
		_, err = asked(t, s, owner, id, "r5", "five")
		require.ErrorIs(t, err, ErrNoSession)
	})
}

//
func TestForks(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "r1", "one")
		apply(t, s, answered("a", "r1", "first"))
		ask(t, s, "a", "r2", "two")
		apply(t, s, answered("a", "r2", "second"))
		source := messagesOf(t, s, "a")

		id, err := s.Fork(t.Context(), Fork{Source: "a", Point: source[1].ID, Principal: owner})
		require.NoError(t, err)
		again, err := s.Fork(t.Context(), Fork{Source: "a", Point: source[1].ID, Principal: owner, ID: id})
		require.NoError(t, err)
		require.Equal(t, id, again)
		require.Equal(t, []string{user("one"), said("first")}, ask(t, s, id, "r3", "three"))
		apply(t, s, answered(id, "r3", "third"))
		fork := messagesOf(t, s, id)
		require.Len(t, fork, 4)
		require.Len(t, fork[1].Parts, 2)
		require.NotEqual(t, source[1].ID, fork[1].ID)
		one, err := s.Session(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, [...]any{"a", source[1].ID, "one (fork 1)", int64(4)}, [...]any{one.Parent, one.ForkPoint, one.Title, one.MessageCount})
		require.Equal(t, source, messagesOf(t, s, "a"))

		// At a question: its answer is not copied, so that it is unanswered.
		id, err = s.Fork(t.Context(), Fork{Source: "a", Point: source[2].ID, Principal: contract.PrincipalAdmin})
		require.NoError(t, err)
		require.Equal(t, query.MessageUnanswered, messagesOf(t, s, id)[2].State)

		for _, f := range []Fork{{Source: "none", Principal: owner}, {Source: "a", Point: fork[0].ID, Principal: owner}, {Source: "a", Point: "x", Principal: owner}} {
			_, err = s.Fork(t.Context(), f)
			require.ErrorIs(t, err, ErrNoSession)
		}

		require.NoError(t, s.DeleteSession(t.Context(), "a"))
		require.ErrorIs(t, s.DeleteSession(t.Context(), "a"), ErrNoSession)
		_, err = s.Messages(t.Context(), "a", "")
		require.ErrorIs(t, err, ErrNoSession)
		require.Equal(t, len(fork)+3, countRows(t, s, "messages"))
		require.Equal(t, 3, countRows(t, s, "parts"))
		apply(t, s, answered("a", "r2", "late")) // of a session that is gone
		require.Empty(t, ask(t, s, "a", "r9", "new"))
	})
}

//
func TestCleanup(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i := range 5 {
			ask(t, s, fmt.Sprintf("s%d", i), "r", "text")
			exec(t, s, `UPDATE sessions SET updated_at = ? WHERE id = ?`, Time{at.Add(time.Duration(i) * time.Minute)}, fmt.Sprintf("s%d", i))
		}
		list, err := s.Sessions(t.Context(), 2)
		require.NoError(t, err)
		require.Equal(t, [...]string{"s4", "s3"}, [...]string{list[0].ID, list[1].ID})
		require.True(t, strings.HasSuffix(list[0].UpdatedAt.String(), "Z"))

		n, err := s.CleanSessions(t.Context(), at.Add(90*time.Second), 0)
		require.NoError(t, err)
		require.Equal(t, int64(2), n)
		n, err = s.CleanSessions(t.Context(), at, 1)
		require.NoError(t, err)
		require.Equal(t, int64(2), n)
		list, err = s.Sessions(t.Context(), 0)
		require.NoError(t, err)
		require.Equal(t, "s4", list[0].ID)
		require.Equal(t, 1, countRows(t, s, "messages"))
	})
}

// A history has a bound, and is made of whole turns.
func TestLongHistories(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxHistory/5)
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i := range 4 {
			ask(t, s, "a", strconv.Itoa(i), long)
			apply(t, s, answered("a", strconv.Itoa(i), long))
		}
		history := ask(t, s, "a", "last", "?")
		require.Len(t, history, 4)
		require.Equal(t, user(long), history[0])
		list := messagesOf(t, s, "a")
		require.Len(t, list, 9)
		require.Empty(t, list[0].Body)
	})
}

// the call that results belong to may be in a turn that is left out.
func TestLongHistoriesBeginWithNoResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxHistory-1000)
	result := NewMessage(contract.Message{Body: []byte(`{"role":"tool","tool_call_id":"c","content":"r"}`)})
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		ask(t, s, "a", "1", "call")
		apply(t, s, answered("a", "1", long[:1000]))
		a := Ask{Session: "a", Request: "2", Principal: owner, Surface: contract.SurfaceChat, At: time.Now()}
		require.NoError(t, s.BeginTurn(t.Context(), a, func([]Message) []Message {
			return []Message{result, result, NewMessage(contract.Message{Body: []byte(user(long))})}
		}))
		apply(t, s, answered("a", "2", "y"))
		history := ask(t, s, "a", "3", "?")
		require.NotEmpty(t, history)
		require.NotContains(t, history[0], `"tool"`)
	})
}

// ids are in the order in which they were made.
func TestIDsAreInOrder(t *testing.T) {
	t.Parallel()
	g := newIDs()
	last := ""
	for range 10_000 {
		id := g.next(prefixPart)
		require.Less(t, last, id)
		last = id
	}
	now := time.Now()
	first := ForkID("r", now)
	require.Equal(t, first, ForkID("r", now))
	require.NotEqual(t, ForkID("r", now), ForkID("s", now))
	require.Len(t, ForkID("r", now), 30)
}

// new sessions, and forks, belong to the project of the store.
func TestProjectOfSessions(t *testing.T) {
	t.Parallel()
	s, err := New(sqliteAddress(t), "0123456789ab")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, s.Prepare(t.Context()))
	ask(t, s, "a", "r1", "one")
	fork, err := s.Fork(t.Context(), Fork{Source: "a", Principal: owner})
	require.NoError(t, err)
	for _, id := range []string{"a", fork} {
		one, err := s.Session(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, "0123456789ab", one.ProjectID)
	}
}
