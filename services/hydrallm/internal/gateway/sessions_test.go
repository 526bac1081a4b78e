package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/pgtest"
)

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

// Scenario 21, R-005, R-006: over two gateways with one NATS server and one database, turns right after each other see each other, streamed or whole.
func TestScenario21TurnsBackToBack(t *testing.T) {
	t.Parallel()
	const sessions, turns = 4, 25
	srv, database := natstest.StartListening(t), pgtest.New(t)
	upstream := fakellm.Start(t)
	upstream.Handle(counting)
	var gateways []running
	for range 2 {
		s := settings(t, freeport.Port(t), upstream.URL(), upstream.URL())
		s.NATS.URL, s.Sessions.Database = srv.ClientURL(), config.Secret(database)
		gateways = append(gateways, serve(t, s))
	}
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			for n := range turns {
				body := fmt.Sprintf(`{"model":"m","stream":%t,"session_id":"s%d","messages":[{"role":"user","content":"q%d"}]}`, n%2 == 0, i, n)
				status, answer := gateways[(i+n)%2].do(t, http.MethodPost, "/v1/chat/completions", body)
				text := gjson.Get(answer, "choices.0.message.content").Str
				if n%2 == 0 {
					text = streamed(answer)
				}
				if want := fmt.Sprintf("%d messages, the last: q%d", 2*n+1, n); status != http.StatusOK || text != want {
					t.Errorf("%d %s, want %s", status, answer, want)
					return
				}
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		_, list := gateways[i%2].do(t, http.MethodGet, fmt.Sprintf("/v1/admin/sessions/s%d/messages", i), "", "X-Admin-Key", adminKey)
		require.Equal(t, int64(2*turns), gjson.Get(list, "#").Int())
	}
}

// streamed is the text of an event stream.
func streamed(events string) string {
	var text strings.Builder
	for line := range strings.Lines(events) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			text.WriteString(gjson.Get(data, "choices.0.delta.content").Str)
		}
	}
	return text.String()
}

// the answer tells its session; who has another key does not see it.
func TestSessionsOfKeys(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(counting)
	x := withServer(t, upstream.URL(), "client_keys: [one, two], admin_key: "+adminKey, "", nil)
	ask := func(key, body string) (int, string) {
		return x.do(t, http.MethodPost, "/v1/chat/completions", body, "Authorization", "Bearer "+key)
	}
	const body = `{"model":"m","session_id":"mine","messages":[{"role":"user","content":"q"}]}`
	status, answer := ask("one", body)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "mine", gjson.Get(answer, "session_id").Str)
	status, answer = ask("two", body)
	require.Equal(t, http.StatusNotFound, status)
	require.Equal(t, "session_not_found", gjson.Get(answer, "error.code").Str)
	require.Len(t, upstream.Requests(), 1)
	require.False(t, gjson.GetBytes(upstream.Requests()[0].Body, "session_id").Exists())
	status, answer = ask(adminKey, body)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, "3 messages")

	// every route about sessions wants the admin's key.
	for _, route := range [][2]string{
		{http.MethodGet, ""},
		{http.MethodPost, "/new"},
		{http.MethodDelete, "/mine"},
		{http.MethodGet, "/mine/messages"},
		{http.MethodPost, "/cleanup"},
		{http.MethodPost, "/import"},
		{http.MethodPost, "/mine/fork"},
	} {
		status, _ := x.do(t, route[0], "/v1/admin/sessions"+route[1], "")
		require.Equal(t, http.StatusUnauthorized, status, route)
	}
	admin := func(method, path, body string) (int, string) {
		return x.do(t, method, "/v1/admin/sessions"+path, body, "X-Admin-Key", adminKey)
	}
	_, list := admin(http.MethodGet, "?limit=5", "")
	require.Equal(t, "mine", gjson.Get(list, "0.session_id").Str)
	status, fork := admin(http.MethodPost, "/mine/fork", "{}")
	require.Equal(t, http.StatusOK, status, fork)
	_, imported := admin(http.MethodPost, "/import", fmt.Sprintf(`{"session_id":%q}`, gjson.Get(fork, "session_id").Str))
	require.Equal(t, int64(4), gjson.Get(imported, "messages.#").Int())
	require.Equal(t, "mine", gjson.Get(imported, "info.parent_session_id").Str)
	for _, path := range []string{"/cleanup?days=x", "?limit=x"} {
		method := http.MethodPost
		if path[0] == '?' {
			method = http.MethodGet
		}
		status, _ := admin(method, path, "")
		require.Equal(t, http.StatusBadRequest, status, path)
	}
	status, cleaned := admin(http.MethodPost, "/cleanup?days=1", "")
	require.Equal(t, http.StatusOK, status)
	require.JSONEq(t, `{"status":"success","deleted_count":0}`, cleaned)
	for _, want := range []int{http.StatusOK, http.StatusNotFound} {
		status, _ = admin(http.MethodDelete, "/mine", "")
		require.Equal(t, want, status)
	}
	for _, name := range []string{"new", "cleanup", "import", "messages"} { // a session may be called like a route
		status, answer = ask("two", strings.Replace(body, "mine", name, 1))
		require.Equal(t, http.StatusOK, status, answer)
		status, answer = admin(http.MethodDelete, "/"+name, "")
		require.Equal(t, http.StatusOK, status, answer)
	}
	status, made := admin(http.MethodPost, "/new", "")
	require.Equal(t, http.StatusOK, status)
	status, answer = ask("two", strings.Replace(body, "mine", gjson.Get(made, "session_id").Str, 1))
	require.Equal(t, http.StatusOK, status, answer)
}

// a question that is larger than what the model takes is the provider's error, and the session goes on without it.
func TestQuestionLargerThanTheWindow(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		if len(r.Body) > 50_000 {
			return fakellm.JSON(http.StatusBadRequest, map[string]any{"error": map[string]any{
				"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded",
			}})
		}
		return counting(r)
	})
	x := withServer(t, upstream.URL(), "admin_key: "+adminKey, "", nil)
	ask := func(text string) (int, string) {
		return x.do(t, http.MethodPost, "/v1/chat/completions", fmt.Sprintf(`{"model":"m","session_id":"s","messages":[{"role":"user","content":%q}]}`, text))
	}
	status, answer := ask("first")
	require.Equal(t, http.StatusOK, status, answer)
	for range 2 {
		status, answer = ask(strings.Repeat("far too long ", 5000))
		require.Equal(t, http.StatusBadRequest, status, answer)
		require.Equal(t, "context_length_exceeded", gjson.Get(answer, "error.code").Str)
	}
	_, answer = ask("second")
	require.Equal(t, "3 messages, the last: second", gjson.Get(answer, "choices.0.message.content").Str, answer)
	_, list := x.do(t, http.MethodGet, "/v1/admin/sessions/s/messages", "", "X-Admin-Key", adminKey)
	require.Len(t, gjson.Get(list, `#(state=="unanswered")#`).Array(), 2)
}

// of several choices the first is what the session goes on with.
func TestSeveralChoicesInASession(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Handle(func(fakellm.Request) fakellm.Answer {
		choice := func(i int) map[string]any {
			return map[string]any{"index": i, "finish_reason": "stop", "message": map[string]any{"role": "assistant", "content": fmt.Sprint("choice ", i)}}
		}
		return fakellm.JSON(http.StatusOK, map[string]any{"id": "c", "object": "chat.completion", "model": "real", "choices": []any{choice(0), choice(1)}})
	})
	x := withServer(t, upstream.URL(), "admin_key: "+adminKey, "", nil)
	for range 2 {
		status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", `{"model":"m","n":2,"session_id":"s","messages":[{"role":"user","content":"q"}]}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Len(t, gjson.Get(answer, "choices").Array(), 2)
	}
	require.Equal(t, []string{"q", "choice 0", "q"}, talkOf(upstream))
}

// a model makes the summary, by the gateway's own pipeline: routed, or by the name of a configured model. When it fails the built-in compressor does the work.
func TestSummaryByAModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		model  string
		answer func(fakellm.Request) fakellm.Answer
		want   string
	}{
		"configured":     {"ab", fakellm.Talk("The model says that the code is KX-4711."), "The model says that the code is KX-4711."},
		"routed":         {"pb/real-b", fakellm.Talk("The model says that the code is KX-4711."), "The model says that the code is KX-4711."},
		"a failure":      {"ab", func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusBadRequest, "no") }, "The code is KX-4711."},
		"no such model":  {"pb", nil, "The code is KX-4711."},
		"nothing to say": {"ab", fakellm.Talk(""), "The code is KX-4711."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			talker, summariser := fakellm.Start(t), fakellm.Start(t)
			talker.Handle(fakellm.Talk("Yes."))
			summariser.Handle(func(r fakellm.Request) fakellm.Answer {
				if text := gjson.GetBytes(r.Body, "messages.@reverse.0.content").Str; !strings.Contains(text, "KX-4711") {
					t.Errorf("the model is asked about %q", text)
				}
				return tt.answer(r)
			})
			s := settings(t, freeport.Port(t), talker.URL(), summariser.URL())
			for i := range s.Models { // "ab" is the other provider's alone
				if s.Models[i].Name == "ab" {
					s.Models[i].Upstreams = s.Models[i].Upstreams[1:]
				}
			}
			s.Sessions.Compressor, s.Sessions.CompressorModel, s.Sessions.CompactThreshold = "llm", tt.model, 300
			x := serve(t, s)
			var talk []string
			for n := 0; len(talk) == 0 || !strings.HasPrefix(talk[0], "[CONVERSATION SUMMARY]"); n++ {
				body := fmt.Sprintf(`{"model":"m","session_id":"s","messages":[{"role":"user","content":"Turn %d. The code is KX-4711. %s"}]}`, n, strings.Repeat("Nothing more is said of it. ", 150))
				status, answer := x.do(t, http.MethodPost, "/v1/chat/completions", body)
				require.Equal(t, http.StatusOK, status, answer)
				talk = talkOf(talker)
			}
			require.Contains(t, talk[0], tt.want)
			_, list := x.do(t, http.MethodGet, "/v1/admin/sessions", "", "X-Admin-Key", adminKey)
			require.Len(t, gjson.Parse(list).Array(), 1, "a summary is no session")
		})
	}
}
