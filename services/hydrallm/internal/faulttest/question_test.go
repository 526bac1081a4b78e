package faulttest

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// question is what one client asks and does. Seed and number say all of it, so that a seed brings the same questions and faults again,
// whatever happens at the same time.
type question struct {
	n            int
	stream       bool
	includeUsage bool
	words        []string // of the right answer
	behaviour    behaviour
	patience     time.Duration // of a client that leaves after a time
	appetite     int           // bytes, of a client that leaves after some
}

// behaviour is how a client takes its answer.
type behaviour int

const (
	stays behaviour = iota
	readsSlowly
	leavesAfterTime
	leavesAfterBytes
)

// vocabulary holds what is easily damaged on its way.
var vocabulary = []string{
	"plain ", "한국어 ", "🌍🏽 ", `"quoted" `, `back\slash `, "line\n\nbreak ", "x<y ", "<thin ", "data: [DONE] ", `{"error":{"message":"text"}} `, "\u2028", "<b>&amp;",
}

func newQuestion(seed uint64, n int) *question {
	r := random(seed, "question", n)
	q := &question{n: n, stream: r.IntN(3) > 0, includeUsage: r.IntN(2) == 0, behaviour: stays}
	q.words = []string{fmt.Sprintf("answer %d: ", n)}
	for range r.IntN(12) {
		q.words = append(q.words, vocabulary[r.IntN(len(vocabulary))])
	}
	switch p := r.IntN(100); {
	case p < 12:
		q.behaviour, q.patience = leavesAfterTime, time.Duration(r.IntN(900))*time.Millisecond
	case p < 18:
		q.behaviour, q.appetite = leavesAfterBytes, r.IntN(1500)
	case p < 22:
		q.behaviour = readsSlowly
	}
	return q
}

// text is the right answer.
func (q *question) text() string { return strings.Join(q.words, "") }

func (q *question) body() string {
	options := ""
	if q.stream && q.includeUsage {
		options = `,"stream_options":{"include_usage":true}`
	}
	return fmt.Sprintf(`{"model":"m","stream":%t%s,"messages":[{"role":"system","content":"s"},{"role":"user","content":"question %d"}]}`, q.stream, options, q.n)
}

// numberOf reads the number of the question back from the body of an upstream call.
func numberOf(body []byte) (int, error) {
	text, _ := strings.CutPrefix(gjson.GetBytes(body, "messages.1.content").Str, "question ")
	return strconv.Atoi(text)
}

// random gives the randomness of one purpose.
func random(seed uint64, purpose string, n int) *rand.Rand {
	salt := uint64(n) << 8
	for _, c := range purpose {
		salt = salt*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(seed, salt))
}
