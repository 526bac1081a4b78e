package gateway_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/config"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/output"
)

// Secrets that go through the gateway, each with a mark that nothing else has.
const (
	canaryProvider = "canary-1-of-the-provider-93b1"
	canaryAdded    = "canary-2-added-at-run-time-77aa"
	canaryClient   = "canary-3-of-a-client-01ff"
	canaryWrong    = "canary-4-that-nobody-has-5e5e"
	canaryMisput   = "canary-5-in-the-wrong-place-4242"
	canaryRetry    = "canary-6-of-a-repeated-call-8d8d"
	canaryCookie   = "canary-7-in-a-cookie-c0c0"
	canaryPrompt   = "canary-8-in-a-prompt-abab"
)

// no secret that anybody gives the gateway is in a log, a message, a bucket, the database, the metrics or an answer, whatever happens to
// the request that it came with. Prompts are in messages and sessions, and nowhere else.
func TestCanaries(t *testing.T) {
	t.Parallel()
	server := natstest.StartListening(t)
	nc, err := nats.Connect(server.ClientURL())
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	var messages output.Buffer
	_, err = nc.Subscribe(">", func(m *nats.Msg) { fmt.Fprintf(&messages, "%s %v %s\n", m.Subject, m.Header, m.Data) })
	require.NoError(t, err)
	require.NoError(t, nc.Flush())

	upstream := fakellm.Start(t)
	upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		text := string(r.Body)
		switch {
		case strings.Contains(text, "refuse"): // the provider gives the key back, in words, as a code and in headers
			a := fakellm.JSON(http.StatusUnauthorized, fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s.","code":"%s","type":"invalid"}}`, r.Key(), r.Key()))
			a.Header = map[string]string{"X-Request-Id": r.Key(), "X-Ratelimit-Limit-Requests": r.Key(), "Www-Authenticate": r.Key()}
			return a
		case strings.Contains(text, "stop here"):
			return fakellm.SSE(`{"choices":[{"index":0,"delta":{"content":"hi"}}]}`, fmt.Sprintf(`{"error":{"message":"bad key %s"}}`, r.Key()))
		}
		return fakellm.Talk("hi")(r)
	})
	s := configured(t, freeport.Port(t), fmt.Sprintf(`
providers: [{id: p, url: "%s/v1", keys: [%s]}]
upstreams: [{id: a, provider: p, model: real-a}]
models: [{name: m, upstreams: [a]}]
routing: {final_fallback: "", aliases: {}}
log: {communication: true}
`, upstream.URL(), canaryProvider))
	s.Server.ClientKeys = []config.Secret{canaryClient}
	s.NATS.URL = server.ClientURL()
	log := &output.Buffer{}
	x := serveTo(t, s, slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))

	var answers strings.Builder
	ask := func(method, path, body string, header ...string) (int, string) {
		status, text := x.do(t, method, path, body, header...)
		fmt.Fprintln(&answers, path, status, text)
		return status, text
	}
	admin := []string{"X-Admin-Key", adminKey}
	status, text := x.do(t, http.MethodPost, "/v1/admin/client-keys", `{"name":"ann"}`, admin...)
	require.Equal(t, http.StatusOK, status, text)
	named := gjson.Get(text, "key").Str // it is shown this once
	require.NotEmpty(t, named, text)

	const chat = "/v1/chat/completions"
	question := func(words, more string) string {
		return fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":"%s %s"}]%s}`, words, canaryPrompt, more)
	}
	sent := 0
	for _, key := range []string{canaryClient, named} {
		header := []string{"Authorization", "Bearer " + key, "Idempotency-Key", canaryRetry, "Cookie", "session=" + canaryCookie, "Proxy-Authorization", "Basic " + canaryCookie}
		for i, words := range []string{"hello", "refuse", "stop here"} {
			for _, more := range []string{"", `,"stream":true`} {
				header[3] = fmt.Sprintf("%s-%d-%d", canaryRetry, i, len(more))
				_, _ = ask(http.MethodPost, chat, question(words, more), header...)
				sent++
			}
		}
		_, _ = ask(http.MethodPost, "/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"refuse"}]}`, "X-Api-Key", key)
		_, _ = ask(http.MethodPost, "/v1/responses", `{"model":"m","input":"refuse"}`, header...)
		_, _ = ask(http.MethodPost, "/v1/embeddings", `{"model":"m","input":"refuse"}`, header...)
		sent += 3
	}
	for _, header := range [][]string{{"Authorization", "Bearer " + canaryWrong}, {"X-Api-Key", canaryWrong}, {"Authorization", "Basic " + canaryWrong}, {"Authorization", canaryWrong}} {
		status, _ = ask(http.MethodPost, chat, question("hello", ""), header...)
		require.Equal(t, http.StatusUnauthorized, status)
	}
	_, _ = ask(http.MethodGet, "/v1/models?api_key="+canaryMisput, "")
	_, _ = ask(http.MethodGet, "/v1/admin/status", "", "X-Admin-Key", canaryWrong)
	_, _ = ask(http.MethodGet, "/v1/admin/status?key="+canaryMisput, "")
	status, text = ask(http.MethodPost, "/v1/admin/keys", `{"provider":"p","keys":["`+canaryAdded+`"]}`, admin...)
	require.Equal(t, http.StatusOK, status, text)
	_, _ = ask(http.MethodPost, "/v1/admin/keys", `{"provider":"`+canaryMisput+`","keys":["`+canaryMisput+`"]}`, admin...)
	_, _ = ask(http.MethodPost, "/v1/admin/keys", `{"provider":"p","keys":"`+canaryMisput+`"`, admin...)
	_, _ = ask(http.MethodPatch, "/v1/admin/client-keys/"+canaryMisput, `{}`, admin...)
	_, _ = ask(http.MethodPost, "/v1/admin/client-keys", `{"`+canaryMisput+`":1}`, admin...)
	_, _ = ask(http.MethodPut, "/v1/admin/settings", `{"`+canaryMisput+`":1}`, admin...)

	await.True(t, func() bool { // the ledger has them
		_, text := x.do(t, http.MethodGet, "/v1/admin/requests?limit=100", "", admin...)
		return len(gjson.Get(text, "requests").Array()) >= sent
	})
	for _, path := range []string{
		"status", "stats", "dashboard", "logs", "comm-logs", "calls", "requests?limit=100", "timeline", "settings", "onboarding", "client-keys", "sessions", "intent/keywords", "install/status",
	} {
		status, _ = ask(http.MethodGet, "/v1/admin/"+path, "", admin...)
		require.Equal(t, http.StatusOK, status, path)
	}
	_, _ = ask(http.MethodGet, "/metrics", "")
	require.NoError(t, x.stop())

	var disk strings.Builder
	require.NoError(t, filepath.WalkDir(filepath.Dir(s.NATS.StoreDir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "config.yaml" {
			return err
		}
		data, err := os.ReadFile(path) //nolint:gosec // a directory of the test
		disk.Write(data)
		return err
	}))
	require.NotZero(t, disk.Len())
	places := map[string]string{"the log": log.String(), "NATS": messages.String(), "the database": disk.String(), "an answer": answers.String()}
	for place, text := range places {
		require.NotEmpty(t, text, place)
		for _, secret := range []string{adminKey, named, canaryProvider, canaryAdded, canaryClient, canaryWrong, canaryRetry, canaryCookie} {
			if at := strings.Index(text, secret); at >= 0 {
				t.Errorf("%s is in %s: %s", secret, place, text[max(0, at-200):min(len(text), at+100)])
			}
		}
		// What stands in the place of an id or a name is asked about, may be repeated to who sent it, and is kept nowhere.
		if at := strings.Index(text, canaryMisput); at >= 0 && place != "an answer" && place != "NATS" {
			t.Errorf("what is in a wrong place is in %s: %s", place, text[max(0, at-200):min(len(text), at+100)])
		}
	}
	require.NotContains(t, log.String(), canaryPrompt)
	require.NotContains(t, answers.String(), canaryPrompt)
}
