package store

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
)

// turns makes n answered turns.
func turns(t *testing.T, s *Store, session string, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		rid := fmt.Sprintf("%s-r%d", session, i)
		ask(t, s, session, rid, fmt.Sprintf("question %d", i))
		apply(t, s, answered(session, rid, fmt.Sprintf("answer %d", i)))
	}
}

func outline(t *testing.T, s *Store) Outline {
	t.Helper()
	o, err := s.Outline(t.Context(), "a")
	require.NoError(t, err)
	return o
}

// summaryOf makes the summary of the first n messages of an outline.
func summaryOf(o *Outline, n int, text string) *Summary {
	sum := &Summary{
		Folded: o.Summary.ID, Body: append(rawjson.AppendString([]byte(`{"role":"system","content":`), text), '}'),
		Part: CompactionPart{Auto: true, Summary: text, Count: n},
	}
	for _, m := range o.Messages[:n] {
		sum.Removed = append(sum.Removed, m.ID)
	}
	return sum
}

func compacted(t *testing.T, s *Store, o *Outline, n int, text string) error {
	t.Helper()
	return s.Compact(t.Context(), "a", o.Messages[n].Turn, o.Messages[n].Place, summaryOf(o, n, text))
}

// the summary is the base of what is loaded, before all messages that stay, and the second one takes the place of the first.
func TestCompaction(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 4)
		o := outline(t, s)
		require.Len(t, o.Messages, 8)
		require.Empty(t, o.Messages[0].Body)
		old, err := s.Before(t.Context(), "a", o.Messages[4].Turn, o.Messages[4].Place)
		require.NoError(t, err)
		require.Len(t, old, 4)
		require.Equal(t, said("answer 1"), old[3].Body)

		require.NoError(t, compacted(t, s, &o, 4, "first \"summary\"\x00"))
		history := ask(t, s, "a", "q", "and?")
		require.Len(t, history, 5)
		require.JSONEq(t, `{"role":"system","content":"first \"summary\"\u0000"}`, history[0])
		require.Equal(t, []string{user("question 2"), said("answer 2"), user("question 3"), said("answer 3")}, history[1:])

		one, err := s.Session(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, int64(6), one.MessageCount)
		require.Positive(t, one.SummaryTokens)
		list := messagesOf(t, s, "a")
		require.Len(t, list, 6)
		require.Equal(t, "system", list[0].Role)
		require.Equal(t, "compaction", list[0].Parts[0].Type)
		var part CompactionPart
		require.NoError(t, json.Unmarshal([]byte(list[0].Parts[0].Data), &part))
		require.Equal(t, CompactionPart{Auto: true, Summary: "first \"summary\"\x00", Count: 4, Requests: []string{"a-r0", "a-r1"}}, part)

		apply(t, s, answered("a", "q", "so"))
		o = outline(t, s)
		require.Equal(t, "first \"summary\"\x00", o.Folded)
		require.Len(t, o.Messages, 6)
		require.NoError(t, compacted(t, s, &o, 4, "second"))
		history = ask(t, s, "a", "q2", "and?")
		require.Equal(t, []string{`{"role":"system","content":"second"}`, user("and?"), said("so")}, history)
	})
}

// a compaction that comes too late writes nothing, and no message that came meanwhile goes.
func TestCompactionThatIsLate(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 4)
		o := outline(t, s)
		ask(t, s, "a", "early", "asked before, answered later")
		turns(t, s, "a", 4, 1)
		require.NoError(t, compacted(t, s, &o, 4, "first"))
		apply(t, s, answered("a", "early", "late answer"))
		before := messagesOf(t, s, "a")
		require.Len(t, before, 9)
		history := ask(t, s, "a", "q", "?")
		require.Equal(t, []string{said("late answer"), user("question 4"), said("answer 4")}, history[6:])

		before = messagesOf(t, s, "a")
		require.ErrorIs(t, compacted(t, s, &o, 4, "again"), ErrChanged, "those messages are gone")
		stale := outline(t, s)
		stale.Summary.ID = "" // as one that did not see the first summary
		require.ErrorIs(t, compacted(t, s, &stale, 2, "again"), ErrChanged)
		require.Equal(t, before, messagesOf(t, s, "a"))

		require.NoError(t, s.DeleteSession(t.Context(), "a"))
		require.ErrorIs(t, compacted(t, s, &o, 4, "gone"), ErrNoSession)
		gone := outline(t, s)
		require.Empty(t, gone.Messages)
	})
}

// a request that comes again after its turn was answered and summarised begins no second turn, whatever was summarised since.
func TestTurnThatWasSummarisedDoesNotBeginAgain(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 6)
		for range 2 {
			o := outline(t, s)
			require.NoError(t, compacted(t, s, &o, 4, "short"))
			before := messagesOf(t, s, "a")
			for i := range 2 {
				err := s.BeginTurn(t.Context(), Ask{Session: "a", Request: fmt.Sprintf("a-r%d", i), Principal: owner, At: at, Again: true}, func(history []Message) []Message {
					require.True(t, history[0].Summary())
					return []Message{NewMessage(contract.Message{Body: []byte(user("again"))})}
				})
				require.NoError(t, err)
			}
			require.Equal(t, before, messagesOf(t, s, "a"))
		}
		err := s.BeginTurn(t.Context(), Ask{Session: "a", Request: "new", Principal: owner, At: at, Again: true}, func([]Message) []Message {
			return []Message{NewMessage(contract.Message{Body: []byte(user("first try"))})}
		})
		require.NoError(t, err)
		require.Contains(t, messagesOf(t, s, "a")[5].Body, "first try")
	})
}

func TestLastRequests(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 3 * maxFolded {
		many = append(many, strconv.Itoa(i/2), "")
	}
	last := lastRequests(many)
	require.Len(t, last, maxFolded)
	require.Equal(t, strconv.Itoa(3*maxFolded/2-1), last[maxFolded-1])
}

// of several compactions at the same time, while turns go on, one comes through, and every message is in the history or was compacted once.
func TestCompactionsAtTheSameTime(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 10)
		var removed atomic.Int64
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				for range 3 {
					o, err := s.Outline(t.Context(), "a")
					if err == nil && len(o.Messages) > 4 {
						n := len(o.Messages) - 4
						if err = compacted(t, s, &o, n, "summary"); err == nil {
							removed.Add(int64(n))
						}
					}
					if err != nil {
						require.ErrorIs(t, err, ErrChanged)
					}
				}
			})
			wg.Go(func() { turns(t, s, "a", 100*(w+1), 3) })
		}
		wg.Wait()
		history := ask(t, s, "a", "q", "?")
		require.Positive(t, removed.Load())
		require.Equal(t, int64(2*(10+4*3)+1), removed.Load()+int64(len(history)))
		require.Contains(t, history[0], "summary")
		require.Equal(t, 1, strings.Count(strings.Join(history, "\n"), "summary"))
	})
}

// what was fetched for older messages becomes a mark, and failed attempts there go; what stays is not touched.
func TestPartsArePruned(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 2)
		list := messagesOf(t, s, "a")
		for i, m := range list {
			for kind, data := range map[string]string{"web_fetch": `{"url":"https://x","content":"long"}`, "retry": `{"attempt":1}`, "web_search": `{"query":"q"}`} {
				exec(t, s, `INSERT INTO parts (id, message_id, type, data, created_at) VALUES (?, ?, ?, ?, ?)`, fmt.Sprintf("prt_%s%d", kind, i), m.ID, kind, data, Time{at})
			}
		}
		o := outline(t, s)
		for range 2 {
			require.NoError(t, s.Compact(t.Context(), "a", o.Messages[2].Turn, o.Messages[2].Place, nil))
		}
		for i, m := range messagesOf(t, s, "a") {
			got := map[string]string{}
			for _, p := range m.Parts {
				got[p.Type] = string(p.Data)
			}
			require.JSONEq(t, `{"query":"q"}`, got["web_search"])
			if i < 2 {
				require.JSONEq(t, `{"url":"https://x","content":"[PRUNED]"}`, got["web_fetch"])
				require.NotContains(t, got, "retry")
			} else {
				require.JSONEq(t, `{"url":"https://x","content":"long"}`, got["web_fetch"])
				require.Contains(t, got, "retry")
			}
		}
		require.Len(t, ask(t, s, "a", "q", "?"), 4)
	})
}

// a history that is cut at its bound keeps its summary; a fork has the summary too.
func TestSummaryStaysTheBase(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", maxHistory/5)
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 1)
		o := outline(t, s)
		require.NoError(t, s.Compact(t.Context(), "a", 2, 0, summaryOf(&o, 2, "base")))
		id, err := s.Fork(t.Context(), Fork{Source: "a", Principal: owner})
		require.NoError(t, err)
		require.Equal(t, []string{`{"role":"system","content":"base"}`}, ask(t, s, id, "f1", "?"))
		fork, err := s.Session(t.Context(), id)
		require.NoError(t, err)
		require.Positive(t, fork.SummaryTokens)
		turns(t, s, id, 1, 1)
		require.Len(t, ask(t, s, id, "f2", "?"), 3, "turns of the fork come behind the summary")

		for i := range 4 {
			ask(t, s, "a", strconv.Itoa(i), long)
			apply(t, s, answered("a", strconv.Itoa(i), long))
		}
		history := ask(t, s, "a", "last", "?")
		require.Len(t, history, 5)
		require.JSONEq(t, `{"role":"system","content":"base"}`, history[0])
		require.Equal(t, user(long), history[1])
		old, err := s.Before(t.Context(), "a", 1<<40, 0)
		require.NoError(t, err)
		require.Len(t, old, 1, "texts of one compaction have a bound")
	})
}

// a session is large by the messages that its summary does not stand for.
func TestLargeSessions(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		turns(t, s, "a", 0, 3)
		ask(t, s, "b", "r", "one")
		tokens := outline(t, s).Tokens
		for threshold, want := range map[int64][]string{tokens - 1: {"a"}, tokens: nil} {
			large, err := s.Large(t.Context(), []string{"a", "a", "b", "none"}, threshold)
			require.NoError(t, err)
			require.Equal(t, want, large)
		}
		o := outline(t, s)
		require.NoError(t, compacted(t, s, &o, 4, strings.Repeat("summary ", 100)))
		large, err := s.Large(t.Context(), []string{"a"}, tokens/2)
		require.NoError(t, err)
		require.Empty(t, large)
		large, err = s.Large(t.Context(), nil, 0)
		require.NoError(t, err)
		require.Empty(t, large)
	})
}
