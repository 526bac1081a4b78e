package ollama_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/ollama"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// server is an Ollama in memory that remembers what it was asked.
type server struct {
	show, ps string // answers; "" = not found
	chat     func(w http.ResponseWriter)

	mu     sync.Mutex
	paths  []string
	bodies map[string]string // the last one by path
	header http.Header       // of the last chat
}

func newServer() *server {
	return &server{
		show: string(fixtures.Get("ollama/show.json").Body), ps: string(fixtures.Get("ollama/ps.json").Body),
		chat: func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/x-ndjson")
			_, _ = w.Write(fixtures.Get("ollama/native-chat.ndjson").Body)
		},
		bodies: map[string]string{},
	}
}

func (s *server) Do(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	if err := context.Cause(ctx); err != nil {
		cancel(err)
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, call.Method, call.URL, bytes.NewReader(call.Body))
	if err != nil {
		cancel(err)
		return nil, err
	}
	w := httptest.NewRecorder()
	s.mu.Lock()
	s.paths = append(s.paths, r.URL.Path)
	s.bodies[r.URL.Path] = string(call.Body)
	s.mu.Unlock()
	switch r.URL.Path {
	case "/api/show":
		respond(w, s.show)
	case "/api/ps":
		respond(w, s.ps)
	case "/api/chat":
		s.header = call.Header
		s.chat(w)
	default:
		s.header = call.Header
		_, _ = io.WriteString(w, "openai")
	}
	return upstream.NewResponse(ctx, cancel, w.Code, w.Header(), io.NopCloser(w.Body)), nil
}

func respond(w http.ResponseWriter, body string) {
	switch body {
	case "":
		w.WriteHeader(http.StatusNotFound)
	case "busy":
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(w, body)
}

func (s *server) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := s.paths
	s.paths = nil
	return paths
}

// numCtx is the window of the last native call.
func (s *server) numCtx() int64 { return gjson.Get(s.bodies["/api/chat"], "options.num_ctx").Int() }

// ask makes a chat call of about so many tokens and gives the body of the answer.
func ask(t *testing.T, d *ollama.Dialect, tokens int, stream bool) (*dialect.Response, string) {
	t.Helper()
	resp, err := d.Chat(t.Context(), call(tokens, stream))
	require.NoError(t, err)
	defer resp.Close()
	body, err := answertest.Body(resp)
	require.NoError(t, err)
	return resp, body
}

func call(tokens int, stream bool) upstream.Call {
	text := strings.Repeat("a", max(0, 3*tokens-200))
	return upstream.Call{
		URL: "http://h:11434/v1", Key: "ollama", Header: http.Header{"Accept": {"text/event-stream"}}, Stream: stream,
		Body:           fmt.Appendf(nil, `{"model":"kappa:8b","max_tokens":1,"messages":[{"role":"user","content":%q}]}`, text),
		HeadersTimeout: time.Minute, RequestTimeout: time.Minute,
	}
}

// what fits goes to the OpenAI-compatible endpoint as it is.
func TestSmallRequestsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newServer()
	d := ollama.New(s)
	_, body := ask(t, d, 2000, false)
	require.Equal(t, "openai", body)
	require.Equal(t, []string{"/v1/chat/completions"}, s.asked(), "nobody asks about what fits anyway")
	require.Equal(t, string(call(2000, false).Body), s.bodies["/v1/chat/completions"])
	require.Equal(t, "Bearer ollama", s.header.Get("Authorization"))
	_, body = ask(t, d, 15_000, false)
	require.Equal(t, "openai", body, "the model is set up for 16384")
	require.Equal(t, []string{"/api/show", "/api/ps", "/v1/chat/completions"}, s.asked())
}

// Provider facts 3.11: what does not fit goes to the native operation, and the answer comes as if from the other one.
func TestLargeRequestsRaiseTheWindow(t *testing.T) {
	t.Parallel()
	s := newServer()
	d := ollama.New(s)
	resp, body := ask(t, d, 20_000, true)
	require.Equal(t, []string{"/api/show", "/api/ps", "/api/chat"}, s.asked())
	require.Equal(t, int64(32_768), s.numCtx())
	require.Equal(t, "Bearer ollama", s.header.Get("Authorization"))
	require.Equal(t, "application/x-ndjson", s.header.Get("Accept"))
	require.Equal(t, dialect.Events, resp.Kind)
	require.Contains(t, body, `"delta":{"content":" is green."}`)
	require.True(t, strings.HasSuffix(body, "data: [DONE]\n\n"))

	s.chat = func(w http.ResponseWriter) {
		_, _ = io.WriteString(w, `{"model":"kappa:8b","message":{"role":"assistant","content":"Hi"},"done":true}`)
	}
	_, body = ask(t, d, 20_000, false)
	require.Equal(t, "Hi", gjson.Get(body, "choices.0.message.content").Str)
	require.Equal(t, []string{"/api/chat"}, s.asked())
}

// A server loads a model anew for every change of its window, so a raised one stays for a while; facts are asked for again each minute.
func TestRaisedWindowStaysForAWhile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		d := ollama.New(s)
		ask(t, d, 20_000, true)
		s.asked()
		ask(t, d, 500, true)
		require.Equal(t, []string{"/api/chat"}, s.asked())
		require.Equal(t, int64(32_768), s.numCtx())
		<-time.After(61 * time.Second)
		ask(t, d, 40_000, true)
		require.Equal(t, []string{"/api/show", "/api/ps", "/api/chat"}, s.asked())
		require.Equal(t, int64(65_536), s.numCtx())
		<-time.After(301 * time.Second)
		ask(t, d, 500, true)
		require.Equal(t, []string{"/v1/chat/completions"}, s.asked())
	})
}

// A server that is no Ollama, or has the model run elsewhere, is left alone.
func TestUnknownServersAreLeftAlone(t *testing.T) {
	t.Parallel()
	for name, show := range map[string]string{
		"not found": "", "a page": "<html>", "something else": `{"ok":true}`, "in the cloud": `{"remote_host":"https://ollama.com","model_info":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.show = show
			d := ollama.New(s)
			_, body := ask(t, d, 50_000, false)
			require.Equal(t, "openai", body)
			ask(t, d, 50_000, false)
			require.Equal(t, []string{"/api/show", "/v1/chat/completions", "/v1/chat/completions"}, s.asked())
		})
	}
}

// A server that could not answer, or a client that left, does not switch the large windows off.
func TestFailedQuestionsAreAskedAgain(t *testing.T) {
	t.Parallel()
	s := newServer()
	d := ollama.New(s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.Chat(ctx, call(20_000, true))
	require.ErrorIs(t, err, context.Canceled)
	show := s.show
	s.show = "busy"
	_, body := ask(t, d, 20_000, true)
	require.Equal(t, "openai", body)
	s.show = show
	ask(t, d, 20_000, true)
	require.Equal(t, int64(32_768), s.numCtx())
}

// Errors come as the server sent them.
func TestErrorsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status     int
		kind, body string
	}{
		"busy":         {http.StatusServiceUnavailable, "application/json", `{"error":"server busy"}`},
		"a page":       {http.StatusOK, "text/html", "<html>"},
		"inside a 200": {http.StatusOK, "application/json", `{"error":"out of memory"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			s.chat = func(w http.ResponseWriter) {
				w.Header().Set("Content-Type", tt.kind)
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body)
			}
			resp, body := ask(t, ollama.New(s), 20_000, false)
			require.Equal(t, tt.status, resp.Status)
			require.Equal(t, tt.body, body)
		})
	}
	s := newServer()
	d := ollama.New(s)
	c := call(20_000, false)
	c.Body = []byte(strings.Replace(string(c.Body), `"messages":[`, `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"http://x/a.png"}}]},`, 1))
	_, err := d.Chat(t.Context(), c)
	var bad *openai.RequestError
	require.ErrorAs(t, err, &bad)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.Chat(ctx, call(20_000, false))
	require.ErrorIs(t, err, context.Canceled)
}

// Someone who invents models fills no memory.
func TestManyModels(t *testing.T) {
	t.Parallel()
	s := newServer()
	s.show = ""
	d := ollama.New(s)
	c := call(3000, false)
	for i := range 3000 {
		c := c
		c.Header = http.Header{}
		c.Body = bytes.Replace(c.Body, []byte("kappa:8b"), fmt.Appendf(nil, "m%d", i), 1)
		resp, err := d.Chat(t.Context(), c)
		require.NoError(t, err)
		resp.Close()
	}
	require.LessOrEqual(t, d.Known(), 1024)
}

func TestEmbeddingsPass(t *testing.T) {
	t.Parallel()
	s := newServer()
	resp, err := ollama.New(s).Embed(t.Context(), call(1, false))
	require.NoError(t, err)
	resp.Close()
	require.Equal(t, []string{"/v1/embeddings"}, s.asked())
}
