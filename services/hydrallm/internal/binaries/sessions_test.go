package binaries

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/pgtest"
)

// longTests makes the tests of outages as long as outages are.
var longTests = os.Getenv("HYDRALLM_LONG_TESTS") == "1"

// counting answers with the number of messages that it was sent, but for those of the system, and with what the last one says.
func counting(r fakellm.Request) fakellm.Answer {
	var talk []gjson.Result
	for _, m := range gjson.GetBytes(r.Body, "messages").Array() {
		if m.Get("role").Str != "system" {
			talk = append(talk, m)
		}
	}
	return fakellm.Talk(fmt.Sprintf("%d messages, the last: %s", len(talk), talk[len(talk)-1].Get("content").Str))(r)
}

// talker is a client with sessions over several ingresses.
type talker struct {
	client *http.Client
	fronts []string // addresses
	turns  atomic.Int64
	enough atomic.Bool
}

// converse has at least so many turns in a session, one right after the other, each over another ingress, until there are enough.
func (c *talker) converse(ctx context.Context, session string, atLeast int) (turns int, err error) {
	for n := 0; n < atLeast || !c.enough.Load(); n++ {
		body := fmt.Sprintf(`{"model":"m","session_id":%q,"messages":[{"role":"user","content":"q%d"}]}`, session, n)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.fronts[n%len(c.fronts)]+"/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			return n, err
		}
		resp, err := c.client.Do(req)
		if err != nil {
			return n, err
		}
		answer, err := io.ReadAll(resp.Body)
		if closed := resp.Body.Close(); err != nil || closed != nil {
			return n, err
		}
		text := gjson.GetBytes(answer, "choices.0.message.content").Str
		if want := fmt.Sprintf("%d messages, the last: q%d", 2*n+1, n); resp.StatusCode != http.StatusOK || text != want {
			return n, fmt.Errorf("turn %d of %s: %d %s, warning %q", n, session, resp.StatusCode, answer, resp.Header.Get("X-Session-Warning"))
		}
		c.turns.Add(1)
		turns = n + 1
	}
	return turns, nil
}

// ownDatabase is the setting of the database in the configuration of a fleet.
var ownDatabase = regexp.MustCompile(`(?m)^sessions: .*$`)

// over two ingresses and two session-writers, of which one is killed again and again, each turn sees the one before, and everything is stored
// once.
func TestSessionsOutliveTheirWriters(t *testing.T) {
	t.Parallel()
	const sessions = 4
	turns, kills := 10, 3
	if longTests {
		turns = 250
	}
	database := pgtest.NewServer(t)
	f := newFleet(t)
	text, err := os.ReadFile(f.config)
	require.NoError(t, err)
	text = ownDatabase.ReplaceAll(text, fmt.Appendf(nil, "sessions: {database: %q}", database.Address()))
	require.NoError(t, os.WriteFile(f.config, text, 0o600))
	second := *f
	second.ingress, second.config = freeport.Addr(t), filepath.Join(t.TempDir(), "config.yaml")
	text = []byte(strings.Replace(string(text), "port: "+portOf(t, f.ingress), "port: "+portOf(t, second.ingress), 1))
	require.NoError(t, os.WriteFile(second.config, text, 0o600))
	f.upstream.Handle(counting)
	f.start(t, "dispatcher")
	f.start(t, "session-writer")
	f.start(t, "ingress")
	second.start(t, "ingress")

	transport := &http.Transport{MaxIdleConnsPerHost: sessions}
	defer transport.CloseIdleConnections()
	c := &talker{client: &http.Client{Transport: transport, Timeout: startWait}, fronts: []string{f.ingress, second.ingress}}
	var talking sync.WaitGroup
	var made [sessions]int
	for i := range sessions {
		talking.Go(func() {
			var err error
			if made[i], err = c.converse(t.Context(), fmt.Sprint("s", i), turns); err != nil {
				t.Error(err)
			}
		})
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		talking.Wait()
	}()
	for n, ended := 0, false; !ended; n++ {
		w := f.start(t, "session-writer")
		ended = c.sometime(over)
		w.End(t, syscall.SIGKILL)
		c.enough.Store(n+1 >= kills)
	}

	total := 0
	for i := range sessions {
		session := fmt.Sprint("s", i)
		answer := (client{base: "http://" + f.ingress + "/v1"}).do(t, http.MethodGet, "/admin/sessions/"+session+"/messages", "", "X-Admin-Key", adminKey)
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		var want []string
		for n := range made[i] {
			want = append(want, fmt.Sprintf("q%d", n), fmt.Sprintf("%d messages, the last: q%d", 2*n+1, n))
		}
		total += len(want)
		var stored []string
		for _, m := range gjson.Parse(answer.body).Array() {
			require.Empty(t, m.Get("state").Str)
			stored = append(stored, m.Get("content").Str)
		}
		require.Equal(t, want, stored)
	}
	require.Equal(t, total, database.Count("messages"))
	t.Logf("%d turns", c.turns.Load())
}

// sometime waits two seconds, or in the short form for some turns, and says whether all talks have ended.
func (c *talker) sometime(over <-chan struct{}) bool {
	pause, until := 10*time.Millisecond, c.turns.Load()+8
	if longTests {
		pause, until = 2*time.Second, 0
	}
	for {
		select {
		case <-over:
			return true
		case <-time.After(pause):
			if c.turns.Load() >= until {
				return false
			}
		}
	}
}
