package sessionwriter

import (
	"database/sql"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/fault"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

// awaitDatabase waits until the service works with its database.
func awaitDatabase(t *testing.T, s *Service) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Degraded() == "" }, testWait, 10*time.Millisecond)
}

// stored gives what the messages of a session say.
func (p *pipe) stored(session string) (list []string) {
	p.t.Helper()
	for after := ""; ; {
		page, err := query.GetMessages.Ask(p.t.Context(), p.bus, query.Messages{ID: session, After: after})
		require.NoError(p.t, err)
		for _, m := range page.Messages {
			list = append(list, rawjson.Text([]byte(m.Content)))
			after = m.ID
		}
		if !page.More {
			return list
		}
	}
}

// a session-writer that starts before its database takes requests, which go on without their history, says what is missing, and comes up by itself.
func TestStartWithoutDatabase(t *testing.T) {
	t.Parallel()
	srv, database := natstest.Start(t), pgtest.NewServer(t)
	database.Stop()
	s := newWriter(t, srv, database.Address())
	require.NotEmpty(t, s.Degraded())
	require.Zero(t, gaugeValue(t, s.metrics.database))
	p := newPipe(t, srv)
	for i := range 3 {
		o := p.ask("r"+strconv.Itoa(i), "s", question("ask "+strconv.Itoa(i)))
		require.True(t, o.request.NoHistory)
		p.answer(o, "answer "+strconv.Itoa(i))
	}
	long := strings.Repeat("many words ", 1<<20) // no message of the bus holds it
	o := p.ask("long", "long", question(long))
	require.True(t, o.request.NoHistory)
	p.answer(o, "short")
	_, err := query.GetStats.Ask(t.Context(), p.bus, query.None{})
	require.ErrorIs(t, err, fault.New(fault.Unavailable, ""))

	database.Start()
	awaitDatabase(t, s)
	require.InDelta(t, 1, gaugeValue(t, s.metrics.database), 0)
	require.Equal(t, []string{"ask 0", "answer 0", "ask 1", "answer 1", "ask 2", "answer 2", "now"}, said(t, p.ask("now", "s", question("now")).body))
	for n := 0; n == 0 || o.request.NoHistory && n < 20; n++ { // a machine with much to do may take longer for it than a request waits
		o = p.ask("next-"+strconv.Itoa(n), "long", question("next"))
	}
	list := said(t, o.body)
	require.Len(t, list, 3)
	require.Len(t, list[0], len(long))
	require.Equal(t, []string{"short", "next"}, list[1:])
	_, err = query.GetStats.Ask(t.Context(), p.bus, query.None{})
	require.NoError(t, err)
}

// two clients in one session at once: turns do not mix, and each sees its own ones in order.
func TestTwoClientsInOneSession(t *testing.T) {
	t.Parallel()
	const turns = 20
	srv := natstest.Start(t)
	newWriter(t, srv, sqliteAddress(t))
	p := newPipe(t, srv)
	var talking sync.WaitGroup
	for _, client := range []string{"a", "b"} {
		talking.Go(func() {
			for n := range turns {
				rid := client + strconv.Itoa(n)
				o, err := p.try(rid, "s", question("ask "+rid))
				if err != nil {
					t.Error(err)
					return
				}
				seen, err := saying(o.body)
				if n > 0 && !slices.Contains(seen, "answer "+client+strconv.Itoa(n-1)) || err != nil {
					t.Errorf("%s sees %q, %v", rid, seen, err)
				}
				if err := p.store(o, "answer "+rid); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	talking.Wait()
	list := p.stored("s")
	require.Len(t, list, 2*2*turns)
	next := map[string]int{}
	for i := 0; i < len(list); i += 2 {
		rid, found := strings.CutPrefix(list[i], "ask ")
		require.True(t, found, list[i])
		require.Equal(t, "answer "+rid, list[i+1])
		client := rid[:1]
		require.Equal(t, client+strconv.Itoa(next[client]), rid)
		next[client]++
	}
}

// longTests makes the tests of outages last as long as outages do.
var longTests = os.Getenv("HYDRALLM_LONG_TESTS") == "1"

// PostgreSQL is killed while sessions talk. They talk on, without history and told so, and when it is back every question and answer is there,
// once, in order.
func TestPostgresIsKilledUnderLoad(t *testing.T) {
	t.Parallel()
	const sessions, before, during, after = 4, 10, 10, 10
	srv, database := natstest.Start(t), pgtest.NewServer(t)
	s := newWriter(t, srv, database.Address())
	p := newPipe(t, srv)
	var unstored, whole atomic.Int64
	var over atomic.Bool
	var talking sync.WaitGroup
	talks := make([][]string, sessions)
	for i := range sessions {
		talking.Go(func() {
			session := "s" + strconv.Itoa(i)
			for n := 0; !over.Load(); n++ {
				rid := fmt.Sprintf("%s-%d", session, n)
				o, err := p.try(rid, session, question("ask "+rid))
				if err != nil {
					t.Errorf("%s: %v", rid, err)
					return
				}
				had, err := saying(o.body)
				if err == nil {
					err = p.store(o, "answer "+rid)
				}
				switch {
				case err != nil:
					t.Errorf("%s: %v", rid, err)
					return
				case o.request.NoHistory:
					unstored.Add(1)
				case !slices.Equal(append(slices.Clone(talks[i]), "ask "+rid), had):
					t.Errorf("%s sees %q", rid, had)
					return
				default:
					whole.Add(1)
				}
				talks[i] = append(talks[i], "ask "+rid, "answer "+rid)
			}
		})
	}
	atLeast := func(counter *atomic.Int64, n int64) {
		from := counter.Load()
		require.Eventually(t, func() bool { return counter.Load() >= from+n || t.Failed() }, 3*testWait, 10*time.Millisecond)
	}
	atLeast(&whole, sessions*before)
	database.Stop()
	atLeast(&unstored, sessions*during)
	if longTests {
		<-time.After(30 * time.Second)
	}
	require.Eventually(t, func() bool { return s.Degraded() != "" }, testWait, 10*time.Millisecond) // at the next look at the latest
	database.Start()
	atLeast(&whole, sessions*after)
	over.Store(true)
	talking.Wait()

	awaitDatabase(t, s)
	rows := 0
	for i := range sessions {
		require.Equal(t, talks[i], p.stored("s"+strconv.Itoa(i)))
		rows += len(talks[i])
	}
	require.Equal(t, rows, database.Count("messages"))
	t.Logf("%d messages, %d turns without history", rows, unstored.Load())
}

// a database that refuses to write, or that takes too long, is as one that is away.
func TestDatabaseThatTakesNothing(t *testing.T) {
	t.Parallel()
	srv, database := natstest.Start(t), pgtest.NewServer(t)
	s := newWriter(t, srv, database.Address())
	p := newPipe(t, srv)
	p.answer(p.ask("r1", "s", question("one")), "first")
	require.Equal(t, []string{"one", "first", "two"}, said(t, p.ask("r2", "s", question("two")).body))
	db, err := sql.Open("postgres", database.Address())
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	exec := func(statement string) {
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}

	for name, code := range map[string]string{"read-only": "25006", "full": "53100"} { // as the server says it
		exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '` + code + `'; END $$`)
		exec(`CREATE TRIGGER refuse BEFORE INSERT ON messages EXECUTE FUNCTION refuse()`)
		for i := range 2 {
			o := p.ask(name+strconv.Itoa(i), name, question("written "+strconv.Itoa(i)))
			require.True(t, o.request.NoHistory)
			p.answer(o, "later")
			await.True(t, func() bool { return s.Degraded() != "" }) // at the latest when the fact of the question can't be stored
		}
		exec(`DROP FUNCTION refuse CASCADE`)
		require.Equal(t, []string{"written 0", "later", "written 1", "later", "now"}, said(t, p.ask(name, name, question("now")).body))
		awaitDatabase(t, s)
	}

	tx, err := db.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(t.Context(), "LOCK TABLE messages")
	require.NoError(t, err)
	o := p.ask("slow", "slow", question("written much later"))
	require.True(t, o.request.NoHistory)
	p.answer(o, "too")
	require.NoError(t, tx.Rollback())
	awaitDatabase(t, s)
	require.Equal(t, []string{"written much later", "too", "now"}, said(t, p.ask("now", "slow", question("now")).body))
}
