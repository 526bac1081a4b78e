package memory

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"hydrallm/services/session-writer/internal/compress"
	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/testkit/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testWait = await.Limit

// compressor stands for one that takes long or fails.
type compressor func(ctx context.Context, text string, target int) (string, error)

func (c compressor) Compress(ctx context.Context, text string, target int) (string, error) {
	return c(ctx, text, target)
}

// bundle is an optimizer that runs on a database.
type bundle struct {
	*Optimizer
	db   *store.Store
	ends chan string
}

func started(t *testing.T, cfg Config, c Compressor) *bundle {
	t.Helper()
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "hydrallm.db"))
	require.NoError(t, err)
	b := &bundle{db: db, ends: make(chan string, 100)}
	b.Optimizer = New(cfg, db, c, slog.New(slog.DiscardHandler), func(end string) { b.ends <- end })
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		require.NoError(t, db.Close())
	})
	return b
}

// turn makes an answered turn and tells the optimizer, as the service does.
func (b *bundle) turn(t *testing.T, rid, question, answer string) {
	t.Helper()
	ask := store.Ask{Session: "s", Request: rid, Principal: contract.PrincipalAnonymous, At: time.Now()}
	err := b.db.BeginTurn(t.Context(), ask, func([]store.Message) []store.Message {
		return []store.Message{store.NewMessage(contract.Message{Body: message("user", question)})}
	})
	require.NoError(t, err)
	require.NoError(t, b.db.ApplyTurns(t.Context(), []contract.Turn{{
		Session: "s", RequestID: rid, Messages: []string{string(message("assistant", answer))}, At: time.Now(), Kind: contract.TurnAnswered,
	}}))
	b.Consider(t.Context(), []string{"s"})
}

func message(role, content string) []byte {
	return append(rawjson.AppendString([]byte(`{"role":"`+role+`","content":`), content), '}')
}

// history gives what the next prompt builds upon.
func (b *bundle) history(t *testing.T) (list []store.Message) {
	t.Helper()
	ask := store.Ask{Session: "s", Request: "look", Principal: contract.PrincipalAnonymous, At: time.Now()}
	require.NoError(t, b.db.BeginTurn(t.Context(), ask, func(history []store.Message) []store.Message {
		list = history
		return nil
	}))
	return list
}

func (b *bundle) await(t *testing.T, want string) {
	t.Helper()
	select {
	case end := <-b.ends:
		require.Equal(t, want, end)
	case <-time.After(testWait):
		require.Fail(t, "nothing was compacted")
	}
}

func content(m *store.Message) string { return rawjson.Text(rawjson.Get([]byte(m.Body), "content")) }

// scenario 20: long turns lead to a summary and the newest messages as they were; later summaries keep what the first one knew.
func TestLongSessions(t *testing.T) {
	t.Parallel()
	b := started(t, Config{Threshold: 1500, Window: 4}, compress.Extractive{})
	for i := range 40 {
		question := fmt.Sprintf("Turn %d. %s Tell me more about clouds and rivers.", i, strings.Repeat("Long words fill the page and nothing is meant by them. ", 4))
		if i == 1 {
			question += " The access code of gate 7 is KX-4711. 담당자는 김하늘 팀장입니다."
		}
		b.turn(t, strconv.Itoa(i), question, fmt.Sprintf("Answer %d. %s", i, strings.Repeat("The river goes where it has always gone. ", 9)))
		select {
		case end := <-b.ends: // the next one may run by now
			require.Contains(t, []string{EndSummarised, EndNothing}, end)
		default:
		}
	}
	await.True(t, func() bool { return len(b.history(t)) <= 1500*4/300 })
	history := b.history(t)
	require.True(t, history[0].Summary())
	require.True(t, strings.HasPrefix(content(&history[0]), "[CONVERSATION SUMMARY]"))
	require.Contains(t, content(&history[0]), "KX-4711")
	require.Contains(t, content(&history[0]), "김하늘")
	require.LessOrEqual(t, compress.Tokens(content(&history[0])), summaryTokens+40)
	last := history[len(history)-4:]
	require.Contains(t, content(&last[0]), "Turn 38.")
	require.Contains(t, content(&last[3]), "Answer 39.")
}

// not before the threshold, and never what is in the window.
func TestNothingToCompact(t *testing.T) {
	t.Parallel()
	b := started(t, Config{Threshold: 100, Window: 4}, compressor(func(context.Context, string, int) (string, error) { return "short", nil }))
	b.turn(t, "1", "one", "first")
	require.Empty(t, b.waiting)
	b.turn(t, "2", strings.Repeat("two ", 300), "second")
	b.await(t, EndNothing)
	require.Len(t, b.history(t), 4)
	b.turn(t, "3", "three", "third")
	b.await(t, EndSummarised)
	history := b.history(t)
	require.Len(t, history, 5)
	require.Equal(t, "third", content(&history[4]))
	b.Consider(t.Context(), []string{"no such session"})
	require.Empty(t, b.waiting)
}

// a compressor that fails changes nothing, and the next answer tries again; nobody waits for one that takes long, and what comes meanwhile stays.
func TestSlowAndFailingCompressors(t *testing.T) {
	t.Parallel()
	var fail error
	asked, answer := make(chan string), make(chan struct{})
	b := started(t, Config{Threshold: 1, Window: 2}, compressor(func(_ context.Context, text string, target int) (string, error) {
		require.Equal(t, summaryTokens, target)
		asked <- text
		<-answer
		return "short", fail
	}))
	b.turn(t, "1", "one", "first")
	b.await(t, EndNothing)
	fail = errors.New("no memory")
	b.turn(t, "2", "two", "second")
	require.Equal(t, "User: one\n\nAssistant: first", <-asked)
	answer <- struct{}{}
	b.await(t, EndFailed)
	require.Len(t, b.history(t), 4)

	fail = nil
	b.turn(t, "3", "three", "third")
	require.Contains(t, <-asked, "second")
	b.turn(t, "4", "four", "fourth") // while the compressor works
	answer <- struct{}{}
	b.await(t, EndSummarised)
	history := b.history(t)
	require.Len(t, history, 5)
	require.Equal(t, []string{"three", "third", "four", "fourth"}, []string{content(&history[1]), content(&history[2]), content(&history[3]), content(&history[4])})
	require.Equal(t, "short\n\nUser: three\n\nAssistant: third", <-asked)
	answer <- struct{}{}
	b.await(t, EndSummarised)
}

// Without a compressor nothing is summarised.
func TestNoCompressor(t *testing.T) {
	t.Parallel()
	b := started(t, Config{Threshold: 1, Window: 2}, nil)
	for i := range 3 {
		b.turn(t, strconv.Itoa(i), "one", "first")
		b.await(t, []string{EndNothing, EndPruned, EndPruned}[i])
	}
	require.Len(t, b.history(t), 6)
}

// the window begins where no result is cut off from its call and no answer from its question.
func TestBoundary(t *testing.T) {
	t.Parallel()
	list := func(spec string) (list []store.Message) {
		roles := map[byte]string{'u': "user", 'a': "assistant", 't': "tool"}
		for i, turn := range strings.Fields(spec) {
			for _, r := range []byte(turn) {
				list = append(list, store.Message{Role: roles[r], Turn: int64(i + 1)})
			}
		}
		return list
	}
	for _, test := range []struct {
		spec         string
		window, want int
	}{
		{"", 4, 0}, {"ua", 4, 0}, {"ua ua ua", 4, 2}, {"ua ua ua", 3, 2}, {"ua ua ua", 1, 4}, {"ua ua ua", 0, 4}, {"ua uua ua", 4, 2}, {"ua ta ta ta", 1, 7}, {"ua ta ta ta", 2, 5}, {"ua tta ua", 3, 4}, {"ua tta ua", 4, 0}, {"ua ua tta ua", 4, 2}, {"ua ua tta ua", 5, 2},
	} {
		require.Equal(t, test.want, boundary(list(test.spec), test.window), "%q %d", test.spec, test.window)
	}
}

// what a summary is made of: texts, marks for other parts, calls; what two messages of a role begin with alike is there once.
func TestConversation(t *testing.T) {
	t.Parallel()
	same := strings.Repeat("가", 497) + " 나다"
	var list []store.Message
	for _, body := range []string{
		`{"role":"user","content":[{"type":"text","text":"look"},{"type":"image_url","image_url":{"url":"data:x"}},{"type":"input_audio"},5,{}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":[]}],"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}},{"type":"custom","custom":{"name":"g","input":"raw"}}]}`,
		`{"role":"tool","tool_call_id":"c","content":"result"}`, `{"role":"developer","content":"rule"}`, `{"role":"assistant","refusal":"no"}`,
		`{"role":"user","content":"` + same + `first one"}`, `{"role":"user","content":"` + same + `second one"}`, `{"role":"user","content":"` + same + `first one"}`, `{"role":"assistant","content":"` + same + `third"}`,
		`{"role":"user","content":"  "}`, `{"role":"user"}`,
	} {
		list = append(list, store.NewMessage(contract.Message{Body: []byte(body)}))
	}
	require.Equal(t, "User: earlier\n\nUser: look\n[image]\n[input_audio]\n\nAssistant: [calls f {\"a\":1}]\n[calls g raw]\n\nTool: result\n\nSystem: rule\n\nAssistant: no\n\nUser: "+same+
		"first one\n\nUser: 나다second one\n\nAssistant: "+same+"third", conversation("User: earlier", list))
}

// longer texts of the history become shorter; results of tools, summaries, and everything else of a message stay.
func TestShorten(t *testing.T) {
	t.Parallel()
	half := compressor(func(_ context.Context, text string, target int) (string, error) {
		if len(text) < 500 {
			return text, nil
		}
		return fmt.Sprintf("short %d", target), nil
	})
	long := strings.Repeat("long ", 200)
	for body, want := range map[string]string{
		`{ "role":"user", "content":"` + long + `","n":1.0}`:                                  `{ "role":"user", "content":"short 83","n":1.0}`,
		`{"role":"user","content":"short"}`:                                                   ``,
		`{"role":"tool","content":"` + long + `"}`:                                            ``,
		`{"role":"system","content":"` + long + `"}`:                                          ``,
		`{"role":"assistant","content":"` + long + `","tool_calls":[]}`:                       ``,
		`{"role":"user","content":[{"type":"text","text":"a"}, {"text":"` + long + `"} ,{}]}`: `{"role":"user","content":[{"type":"text","text":"a"}, {"text":"short 83"} ,{}]}`,
		`{"role":"user","content":[{"type":"text","text":"a"}]}`:                              ``,
	} {
		got, err := Shorten(t.Context(), half, []byte(body))
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err := Shorten(t.Context(), compressor(func(context.Context, string, int) (string, error) { return "", errors.New("no") }), message("user", long))
	require.Error(t, err)
}
