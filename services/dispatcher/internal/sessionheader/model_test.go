package sessionheader

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
)

// model is the registry to the letter of R-203..R-207: conversations keep the chains of all their requests, the longest known prefix wins, of two
// conversations with the same one the last used, chains are bounded, conversations expire and are evicted.
type model struct {
	limit    int
	sessions []*modelSession
}

type modelSession struct {
	id     string
	hashes map[root]bool
	used   time.Time
	turn   int
}

const maxChain = 2000

func (m *model) ID(messages string, turn int) string {
	chain := chainOf(messages)
	var best *modelSession
	length := 0
	for _, s := range m.sessions {
		for n := len(chain); n > 0; n-- {
			if s.hashes[chain[n-1]] {
				if n > length || n == length && s.turn > best.turn {
					best, length = s, n
				}
				break
			}
		}
	}
	if best == nil || time.Since(best.used) >= MaxIdle {
		m.drop(best)
		last := chain[len(chain)-1]
		best = &modelSession{id: hex.EncodeToString(last[:idBytes]), hashes: map[root]bool{}}
		m.sessions = append(m.sessions, best)
	}
	for _, h := range chain {
		if len(best.hashes) < maxChain {
			best.hashes[h] = true
		}
	}
	best.used, best.turn = time.Now(), turn
	if len(m.sessions) > m.limit {
		oldest := m.sessions[0]
		for _, s := range m.sessions {
			if s.turn < oldest.turn {
				oldest = s
			}
		}
		m.drop(oldest)
	}
	return best.id
}

func (m *model) drop(gone *modelSession) {
	for i, s := range m.sessions {
		if s == gone {
			m.sessions = append(m.sessions[:i], m.sessions[i+1:]...)
			return
		}
	}
}

func chainOf(messages string) (chain []root) {
	all := gjson.Parse(messages).Array()
	first := 0
	for i, m := range all {
		if m.Get("role").Str == "user" {
			first = i
			break
		}
	}
	for _, m := range all[first:] {
		var h []byte
		if len(chain) > 0 {
			h = chain[len(chain)-1][:]
		}
		chain = append(chain, sha256.Sum256(appendMessage(append([]byte(nil), h...), m)))
	}
	return chain
}

// The registry that keeps only the first hash of each conversation gives the ids of the one that keeps whole chains, over long random runs of
// growing, branching, cut and forgotten dialogues.
func TestRegistryEqualsModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const limit = 6
				rnd := rand.New(rand.NewPCG(seed, 0))
				r, m := Registry{table: table{limit: limit}}, model{limit: limit}
				for turn := range 600 {
					messages := randomDialogue(rnd)
					got, ok := r.ID(t.Context(), []byte(messages))
					require.True(t, ok)
					require.Equal(t, m.ID(messages, turn), got, messages)
					require.LessOrEqual(t, r.table.order.Len(), limit)
					require.Len(t, r.table.byRoot, r.table.order.Len())
					<-time.After(time.Duration(rnd.IntN(100)) * time.Minute)
				}
			})
		})
	}
}

func randomDialogue(rnd *rand.Rand) string {
	var messages []string
	if rnd.IntN(3) == 0 {
		messages = append(messages, `{"role":"system","content":"s`+strconv.Itoa(rnd.IntN(2))+`"}`)
	}
	if len(messages) == 0 || rnd.IntN(5) > 0 {
		messages = append(messages, `{"role":"user","content":"q`+strconv.Itoa(rnd.IntN(9))+`"}`)
	}
	for range rnd.IntN(5) {
		role := [...]string{"assistant", "user", "system"}[rnd.IntN(3)]
		messages = append(messages, `{"role":"`+role+`","content":"x`+strconv.Itoa(rnd.IntN(3))+`"}`)
	}
	return "[" + strings.Join(messages, ",") + "]"
}
