package sessionwriter

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/contract"
	"hydrallm/shared/query"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/natstest"
)

// compacting is a session-writer that summarises what is above 100 tokens, and a pipe to it.
func compacting(t *testing.T, compressor, url string) *pipe {
	t.Helper()
	srv := natstest.Start(t)
	s, err := New(Config{ID: "w1", Database: sqliteAddress(t), CompactThreshold: 100, RecentWindow: 4, Compressor: compressor, CompressorURL: url},
		bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	require.NoError(t, s.Start(t.Context()))
	return newPipe(t, srv)
}

// talk makes answered turns of more than 50 tokens each.
func (p *pipe) talk(session string, n int) {
	p.t.Helper()
	for i := range n {
		o := p.ask(fmt.Sprintf("%s-%d", session, i), session, question(fmt.Sprintf("Code %d is KX-%d. ", i, 100+i)+strings.Repeat("Nothing else. ", 10)))
		p.answer(o, fmt.Sprintf("Answer %d. ", i)+strings.Repeat("So be it. ", 10))
	}
}

// messages waits until a session has so many messages.
func (p *pipe) messages(session string, n int) []query.Message {
	p.t.Helper()
	var page query.MessagePage
	await.True(p.t, func() bool {
		var err error
		page, err = query.GetMessages.Ask(p.t.Context(), p.bus, query.Messages{ID: session})
		return err == nil && len(page.Messages) == n
	})
	return page.Messages
}

// after an answer a long session gets a summary, which is the base of the next prompt, before the newest messages.
func TestSessionsAreCompacted(t *testing.T) {
	t.Parallel()
	p := compacting(t, "extractive", "")
	p.talk("s", 5)
	list := p.messages("s", 5)
	require.Equal(t, "compaction", list[0].Parts[0].Type)
	texts := said(t, p.ask("last", "s", question("and?")).body)
	require.Len(t, texts, 6)
	require.True(t, strings.HasPrefix(texts[0], "[CONVERSATION SUMMARY]"))
	for i := range 3 {
		require.Contains(t, texts[0], fmt.Sprintf("KX-%d", 100+i))
	}
	require.Contains(t, texts[1], "Code 3")
	require.Contains(t, texts[4], "Answer 4")
}

// a side-car makes the summary, and the built-in compressor when there is none.
func TestSidecarMakesTheSummary(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Text   string `json:"text"`
			Target int    `json:"target_tokens"`
		}
		data, _ := io.ReadAll(r.Body)
		if json.Unmarshal(data, &q) != nil || q.Target == 0 {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, `{"text":"short"}`)
	}))
	t.Cleanup(server.Close)
	p := compacting(t, "http", server.URL)
	short := p.ask("r1", "s", question(strings.Repeat("Long text without an end. ", 300)))
	p.answer(short, "first")
	p.talk("s", 4)
	p.messages("s", 5)
	require.Contains(t, said(t, p.ask("last", "s", question("and?")).body)[0], "short")

	p = compacting(t, "http", "http://127.0.0.1:1")
	p.answer(p.ask("r1", "s", question("The code is KX-7. "+strings.Repeat("Long text without an end. ", 300))), "first")
	p.talk("s", 4)
	p.messages("s", 5)
	require.Contains(t, said(t, p.ask("last", "s", question("and?")).body)[0], "KX-7")
}

// a client may have its history shortened: not its new message, no results of tools, and only for this prompt.
func TestCompressContext(t *testing.T) {
	t.Parallel()
	p := compacting(t, "off", "")
	long := strings.TrimSpace(strings.Repeat("a long text about nothing ", 100))
	p.answer(p.ask("r1", "s", question("begin "+long)), "short")
	p.answer(p.ask("r2", "s", `{"model":"m","messages":[{"role":"tool","tool_call_id":"c","content":"`+long+`"}]}`), "done")
	on := func(r *contract.Request) { r.CompressContext = new(true) }
	o := p.ask("r3", "s", question(long), on)
	texts := said(t, o.body)
	require.Len(t, texts, 5)
	require.True(t, strings.HasPrefix(texts[0], "begin a long"))
	require.Contains(t, texts[0], "[...]")
	require.Less(t, len(texts[0]), len(long)*2/3)
	require.Equal(t, []string{"short", long, "done", long}, texts[1:])
	require.Less(t, o.request.Traits.Tokens, int64(len(long)*3/4))

	off := func(r *contract.Request) { r.CompressContext = new(false) }
	for i, change := range []func(*contract.Request){off, func(*contract.Request) {}} {
		require.Equal(t, "begin "+long, said(t, p.ask(fmt.Sprintf("r%d", 4+i), "s", question("x"), change).body)[0])
	}
	// A client that sends its transcript again gets no message twice for it.
	again := fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q},{"role":"assistant","content":"short"},{"role":"user","content":"new"}]}`, "begin "+long)
	texts = said(t, p.ask("r6", "s", again, on).body)
	require.Len(t, texts, 5)
	require.Contains(t, texts[0], "[...]")
}

// R-307..R-310, section 19, scenario 20: over forty long turns the prompt stays small, and holds a summary, the newest messages, and the facts of the beginning.
func TestLongSessionsAreCompacted(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t)
	s, err := New(Config{ID: "w1", Database: sqliteAddress(t), CompactThreshold: 1000, RecentWindow: 4, MaxWait: time.Millisecond}, bustest.Connect(t, srv), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	t.Cleanup(func() { stop(t, s) })
	require.NoError(t, s.Start(t.Context()))
	p := newPipe(t, srv)
	idle := strings.Repeat("there is much to be said about all of this and nothing of it is new. ", 8)
	compacted := 0
	for n := range 40 {
		text := idle
		if n == 1 {
			text += "The access code of gate 7 is KX-4711."
		}
		o := p.ask(strconv.Itoa(n), "s", question(text))
		list := said(t, o.body)
		require.Equal(t, text, list[len(list)-1])
		if strings.HasPrefix(list[0], "[CONVERSATION SUMMARY]") {
			compacted++
			require.Contains(t, list[0], "KX-4711")
			require.GreaterOrEqual(t, len(list), 6)
			require.Equal(t, fmt.Sprintf("answer %d. ", n-1)+idle, list[len(list)-2])
		}
		p.answer(o, fmt.Sprintf("answer %d. ", n)+idle)
		await.True(t, func() bool {
			page, err := query.GetMessages.Ask(t.Context(), p.bus, query.Messages{ID: "s"})
			return err == nil && len(page.Messages) <= 9
		})
	}
	require.Greater(t, compacted, 30)
}
