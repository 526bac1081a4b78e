package prompt

// piece is a message of the result: one of the history, one of the request, or one that both have, which is the stored one.
type piece struct {
	stored *message
	entry  *entry
}

// merger finds what the client sent again of the history.
type merger struct {
	out   []piece
	known int // messages of the request up to the last one that the history has
	at    int // place of the part at hand in the request
}

// merge puts a part of the history and a part of the request together: the longest run of messages that both have, in the same order and with an answer
// among them, is the same conversation; what stands before and behind it is put together in the same way. Without such a run the history comes
// first. Only who sends a transcript again sends answers: questions that are equal may be two.
func (m *merger) merge(stored []message, sent []entry) {
	i, j, n := longestRun(stored, sent)
	if n == 0 {
		for k := range stored {
			m.out = append(m.out, piece{stored: &stored[k]})
		}
		for k := range sent {
			m.out = append(m.out, piece{entry: &sent[k]})
		}
		m.at += len(sent)
		return
	}
	before := sent[:j]
	if i > 0 && stored[i-1].summary { // what the client still has of the time before is in the summary
		m.at += j
		before = nil
	}
	m.merge(stored[:i], before)
	for k := range n {
		m.out = append(m.out, piece{&stored[i+k], &sent[j+k]})
	}
	m.at += n
	m.known = m.at
	m.merge(stored[i+n:], sent[j+n:])
}

// maxCompared bounds the comparisons that one request costs; of a longer history only the newest part is compared.
const maxCompared = 4 << 20

// longestRun gives the longest run of equal messages that holds an answer, and of several the last one: from i of the history and from j of what was sent
// on, n messages.
func longestRun(stored []message, sent []entry) (i, j, n int) {
	if len(sent) == 0 {
		return 0, 0, 0
	}
	first := max(0, len(stored)-maxCompared/len(sent))
	runs, before := make([]run, len(sent)+1), make([]run, len(sent)+1)
	for a := first; a < len(stored); a++ {
		runs, before = before, runs
		for b := range sent {
			if stored[a].key != sent[b].key || stored[a].summary {
				runs[b+1] = run{}
				continue
			}
			r := run{before[b].length + 1, before[b].answer || sent[b].role == roleAssistant}
			if runs[b+1] = r; r.answer && r.length >= n {
				i, j, n = a+1-r.length, b+1-r.length, r.length
			}
		}
	}
	return i, j, n
}

// run is a run of equal messages that ends at a pair.
type run struct {
	length int
	answer bool
}
