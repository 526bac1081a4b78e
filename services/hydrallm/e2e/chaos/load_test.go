//go:build e2e

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
)

// question is what a client of the load asks. Seed and number say all of it, so that a seed brings the same questions again.
type question struct {
	n       int
	surface string
	model   string // m and v are configured, auto is decided by the analyzer
	stream  bool
	web     bool // it names a page, which the enricher reads
	session string
}

// kinds are the surfaces of questions, as often as they are asked.
var kinds = []string{"chat", "chat", "chat", "completions", "messages", "messages", "responses", "responses", "embeddings"}

func newQuestion(r *rand.Rand, n int) question {
	q := question{n: n, surface: kinds[r.IntN(len(kinds))], model: []string{"m", "auto"}[r.IntN(2)], stream: r.IntN(2) == 0}
	switch q.surface {
	case "embeddings":
		q.model, q.stream = "v", false
	case "chat":
		q.web = r.IntN(3) == 0
	}
	return q
}

// body is the question as its surface has it. page is the address of a page of the web.
func (q question) body(page string) string {
	text := fmt.Sprintf("q%d", q.n)
	quoted, _ := json.Marshal(text) // a string can be
	body := fmt.Sprintf(surfaces[q.surface].body, q.model, q.stream, quoted)
	if q.web {
		body = body[:1] + fmt.Sprintf(`"web_fetch":%q,`, page) + body[1:]
	}
	if q.session != "" {
		body = body[:1] + fmt.Sprintf(`"session_id":%q,`, q.session) + body[1:]
	}
	return body
}

// answer is what the upstream says to a question, in words.
func answer(n int) []string {
	words := []string{fmt.Sprintf("answer to q%d:", n)}
	for i := range 4 + n%12 {
		words = append(words, fmt.Sprintf(" word%d", i))
	}
	return words
}

// numbers are the questions in a text.
var numbers = regexp.MustCompile(`\bq(\d+)\b`)

// numberOf finds the question that an upstream is asked.
func numberOf(r fakellm.Request) int {
	text := gjson.GetBytes(r.Body, "input").Raw
	if all := gjson.GetBytes(r.Body, "messages").Array(); len(all) > 0 {
		text = all[len(all)-1].Get("content").Raw
	}
	found := numbers.FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		return -1
	}
	n, _ := strconv.Atoi(found[len(found)-1][1]) // it is digits
	return n
}

// replyTo answers as the upstreams of the load do: in some steps, streamed or not.
func replyTo(r fakellm.Request, step time.Duration) fakellm.Answer {
	n := numberOf(r)
	if strings.HasSuffix(r.Path, "/embeddings") {
		return fakellm.JSON(http.StatusOK, fmt.Sprintf(`{"object":"list","model":"embedding","data":[{"object":"embedding","index":0,"embedding":[%d,0.5]}],`+
			`"usage":{"prompt_tokens":1,"total_tokens":1}}`, n)).After(step * time.Duration(2+n%4))
	}
	if r.Streams() {
		return fakellm.Stream(answer(n)...).Gap(step)
	}
	return fakellm.Chat(strings.Join(answer(n), "")).After(step * time.Duration(3+n%20))
}

// outcome is what became of a question.
type outcome int

const (
	complete outcome = iota
	refused          // a well-formed error before any answer
	cut              // a stream that ended with a well-formed error
	broken           // anything else: no answer, half an answer, a malformed one
)

// result is the end of a question.
type result struct {
	question
	front      string
	began      time.Time
	ended      time.Time
	outcome    outcome
	answered   string // the text that came
	err        error  // what is wrong, or the error that came
	responseID string
}

// unfinished says that nothing of the answer had reached the client when it failed.
func (r result) unfinished() bool { return r.outcome != complete && r.answered == "" }

// load is a crowd of clients that ask without a pause, each one question after the other.
type load struct {
	x       *distributed
	seed    uint64
	client  *http.Client
	page    string
	stop    context.CancelFunc
	asking  sync.WaitGroup
	session string           // prefix of the names of sessions
	due     <-chan time.Time // when the next question may be asked; nil = at once
	forget  bool             // results without a fault are not kept

	mu       sync.Mutex
	next     int
	turns    [talkers]int
	done     int
	results  []result
	running  map[int]question
	changed  chan struct{}
	suspects map[string]bool // fronts that broke a connection
}

const (
	clients = 24
	talkers = 4 // of the clients have a session each
)

// newLoad makes a load that begins with question number first.
func (x *distributed) newLoad(seed uint64, first int) *load {
	return &load{
		x: x, seed: seed, client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}, Timeout: 2 * await.Limit}, page: x.pages.URL + "/page", next: first,
		session: fmt.Sprintf("talk-%d", first), running: map[int]question{}, changed: make(chan struct{}),
		suspects: map[string]bool{},
	}
}

// start lets the clients ask, until finish or the end of the test.
func (l *load) start(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l.stop = stop
	for i := range clients {
		l.asking.Go(func() {
			for l.mayAsk(ctx) {
				l.ask(context.WithoutCancel(ctx), i)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		l.asking.Wait()
		l.client.CloseIdleConnections()
	})
}

// mayAsk waits until the next question is due; it is false when the load ends.
func (l *load) mayAsk(ctx context.Context) bool {
	if l.due != nil {
		select {
		case <-l.due:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// talk is how many questions of a client belong to one session.
const talk = 25

// ask puts the next question of a client.
func (l *load) ask(ctx context.Context, who int) {
	l.mu.Lock()
	n := l.next
	l.next++
	q := newQuestion(rand.New(rand.NewPCG(l.seed, uint64(n))), n)
	if who < talkers {
		q.surface, q.model, q.web, q.session = "chat", "m", false, fmt.Sprintf("%s-%d-%d", l.session, who, l.turns[who]/talk)
		l.turns[who]++
	}
	l.running[n] = q
	l.mu.Unlock()
	r := result{question: q, began: time.Now()}
	for i := range l.x.fronts { // as a load balancer would
		r.front = l.x.fronts[(who+i)%len(l.x.fronts)]
		if l.serves(ctx, r.front) || i == len(l.x.fronts)-1 {
			if l.exchange(ctx, &r); !refusedToConnect(r.err) {
				break
			}
		}
	}
	r.ended = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, n)
	l.done++
	if !l.forget || r.outcome != complete {
		l.results = append(l.results, r)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

// serves says whether a front may be asked: one that broke a connection has to be ready first.
func (l *load) serves(ctx context.Context, front string) bool {
	l.mu.Lock()
	suspect := l.suspects[front]
	l.mu.Unlock()
	if !suspect {
		return true
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+front+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := l.client.Do(req)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.suspects, front)
	return true
}

func refusedToConnect(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// exchange puts a question to a front and judges the answer.
func (l *load) exchange(ctx context.Context, r *result) {
	s := surfaces[r.surface]
	r.outcome = broken
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+r.front+s.path, strings.NewReader(r.body(l.page)))
	if err != nil {
		r.err = err
		return
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := l.client.Do(req)
	if err != nil {
		r.err = err
		l.mu.Lock()
		l.suspects[r.front] = true
		l.mu.Unlock()
		return
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	data, err := io.ReadAll(resp.Body)
	body := string(data)
	switch {
	case err != nil:
		seen, _ := s.read(body)
		r.answered, r.err = seen.text, err
	case resp.StatusCode != http.StatusOK:
		r.outcome, r.err = refused, fmt.Errorf("%d %.300s", resp.StatusCode, body)
		if err := s.checkRefusal(resp.StatusCode, body); err != nil {
			r.outcome, r.err = broken, err
		}
	case r.stream:
		r.judgeStream(s, body)
	default:
		r.answered = gjson.Get(body, s.text).String()
		r.outcome = complete
		r.responseID = gjson.Get(body, "id").Str
		if r.answered != r.wants() || !gjson.Valid(body) {
			r.outcome, r.err = broken, fmt.Errorf("the answer is %.300s", body)
		}
	}
}

// wants is the right answer.
func (q question) wants() string {
	if q.surface == "embeddings" {
		return strconv.Itoa(q.n)
	}
	return strings.Join(answer(q.n), "")
}

func (r *result) judgeStream(s surface, body string) {
	seen, err := s.read(body)
	r.answered = seen.text
	switch {
	case err != nil:
		r.err = err
	case seen.failed && strings.HasPrefix(r.wants(), seen.text):
		r.outcome, r.err = cut, fmt.Errorf("cut: %.400s", body[max(0, len(body)-400):])
	case seen.failed, seen.text != r.wants():
		r.err = fmt.Errorf("the stream says %q", seen.text)
	default:
		r.outcome = complete
	}
}

// await waits until so many more questions than now have their ends.
func (l *load) await(t *testing.T, more int) {
	t.Helper()
	late := time.After(await.Limit)
	l.mu.Lock()
	goal := l.done + more
	l.mu.Unlock()
	for {
		l.mu.Lock()
		done, changed := l.done >= goal, l.changed
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("no more answers come; %d questions are under way", len(l.running))
		}
	}
}

// finish lets the clients come to an end and gives what became of their questions.
func (l *load) finish() []result {
	l.stop()
	l.asking.Wait()
	l.client.CloseIdleConnections()
	return l.results
}
