package store

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// A million messages in sessions of a hundred.
const (
	manySessions = 10_000
	manyTurns    = 50
)

// fillMany makes sessions of answered turns with statements of the database, which takes seconds.
func fillMany(b *testing.B, s *Store) {
	b.Helper()
	const counted = `WITH RECURSIVE s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < %d), m(t) AS (SELECT 1 UNION ALL SELECT t + 1 FROM m WHERE t < %d), a(p) AS (SELECT 0 UNION ALL SELECT 1) `
	now := Time{time.Now()}
	text := strings.Repeat("Words of a message that is neither short nor long. ", 6)
	begin := time.Now()
	for _, statement := range []string{
		`INSERT INTO sessions (id, project_id, owner, created_at, updated_at, message_count, turns, context_tokens)
			SELECT 'many-' || n, 'default', '` + owner + `', ?, ?, 100, 50, 7500 FROM s`,
		`INSERT INTO messages (id, session_id, role, created_at, turn, place, state, request_id, tokens, surface, body)
			SELECT 'msg_' || n || '-' || t || '-' || p, 'many-' || n, CASE p WHEN 0 THEN 'user' ELSE 'assistant' END, ?, t, p * ` + strconv.Itoa(answerPlace) + `, 'done',
			'rid-' || n || '-' || t, 75, 'chat', CASE p WHEN 0 THEN '{"role":"user","content":"' ELSE '{"role":"assistant","content":"' END || n || ' ' || t || ' ` + text + `"}' FROM s, m, a`,
		`INSERT INTO parts (id, message_id, type, data, created_at)
			SELECT 'prt_' || n || '-' || t, 'msg_' || n || '-' || t || '-1', 'step_cost', '{"provider":"groq","model":"llama","key_index":2,"tokens":13,"latency_ms":250}', ? FROM s, m`,
	} {
		args := slices.Repeat([]any{now}, strings.Count(statement, "?"))
		exec(b, s, fmt.Sprintf(counted, manySessions-1, manyTurns)+statement, args...)
	}
	if s.write.DriverName() == postgresDriver { // else the server does it by itself while the benchmark runs
		exec(b, s, `VACUUM ANALYZE`)
		exec(b, s, `CHECKPOINT`)
	} else {
		exec(b, s, `ANALYZE`)
	}
	b.Logf("filled in %s", time.Since(begin).Round(time.Second))
}

// times are how long single operations took.
type times struct {
	mu   sync.Mutex
	list []time.Duration
}

func (t *times) measure(fn func()) {
	begin := time.Now()
	fn()
	took := time.Since(begin)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.list = append(t.list, took)
}

func (t *times) report(b *testing.B, name string) {
	b.Helper()
	slices.Sort(t.list)
	for _, percent := range []int{50, 99} {
		b.ReportMetric(float64(t.list[(len(t.list)-1)*percent/100].Microseconds())/1000, fmt.Sprintf("%s-p%d-ms", name, percent))
	}
}

// BenchmarkMillionMessages loads contexts of a hundred messages, and writes turns, beside a million messages. What a turn writes are its question, with the
// context loaded in the same transaction, and its answer, which comes in batches as the service makes them.
func BenchmarkMillionMessages(b *testing.B) {
	for _, backend := range backends {
		b.Run(backend.name, func(b *testing.B) {
			s := openStore(b, backend.address(b))
			fillMany(b, s)
			next := 0
			b.Run("load", func(b *testing.B) {
				var took times
				for b.Loop() {
					next = (next + 7919) % manySessions
					session := fmt.Sprintf("many-%d", next)
					took.measure(func() {
						_, err := s.Applied(b.Context(), session)
						require.NoError(b, err)
						a := Ask{Session: session, Request: "look", Principal: owner, At: time.Now()}
						require.NoError(b, s.BeginTurn(b.Context(), a, func(history []Message) []Message {
							require.GreaterOrEqual(b, len(history), 2*manyTurns)
							return nil
						}))
					})
				}
				took.report(b, "load")
			})
			b.Run("turns", func(b *testing.B) { benchmarkTurns(b, s) })
		})
	}
}

// turnsBefore is how many turns the benchmarks have made, so that each has another name.
var turnsBefore atomic.Int64

// talkers is how many sessions talk at once: a batch may be full then, and a quarter of the questions that the service takes at a time wait.
const talkers = 64

// benchmarkTurns has many sessions talk at once. Each turn waits for its question to be saved and its answer to be stored.
func benchmarkTurns(b *testing.B, s *Store) {
	b.Helper()
	var asked, whole times
	answers := make(chan answer)
	var writer sync.WaitGroup
	writer.Go(func() { storeAnswers(b, s, answers) })
	b.SetParallelism(talkers / runtime.GOMAXPROCS(0))
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := turnsBefore.Add(1)
			session, rid := fmt.Sprintf("many-%d", n*7919%manySessions), fmt.Sprintf("new-%d", n)
			whole.measure(func() {
				asked.measure(func() {
					a := Ask{Session: session, Request: rid, Principal: owner, Surface: contract.SurfaceChat, At: time.Now()}
					if err := s.BeginTurn(b.Context(), a, func([]Message) []Message {
						return []Message{NewMessage(contract.Message{Body: []byte(user("question"))})}
					}); err != nil {
						b.Error(err)
					}
				})
				done := make(chan struct{})
				answers <- answer{answered(session, rid, "answer"), done}
				<-done
			})
		}
	})
	b.StopTimer()
	close(answers)
	writer.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "turns/s")
	asked.report(b, "question")
	whole.report(b, "turn")
}

// answer is an answer to be stored, and where to tell that it is.
type answer struct {
	turn contract.Turn
	done chan struct{}
}

// storeAnswers makes batches of what waits, as the service does.
func storeAnswers(b *testing.B, s *Store, answers <-chan answer) {
	b.Helper()
	for first := range answers {
		batch := []answer{first}
	more:
		for len(batch) < batchSize {
			select {
			case a, ok := <-answers:
				if !ok {
					break more
				}
				batch = append(batch, a)
			default:
				break more
			}
		}
		var turns []contract.Turn
		for _, a := range batch {
			turns = append(turns, a.turn)
		}
		if err := s.ApplyTurns(b.Context(), turns); err != nil {
			b.Error(err)
		}
		for _, a := range batch {
			close(a.done)
		}
	}
}
