package anthropic_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// over the wire it is Messages, to the caller Chat Completions.
func TestOverTheWire(t *testing.T) {
	t.Parallel()
	answers := make(chan fixtures.Fixture, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := <-answers
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.String() != "/v1/messages?tenant=a" || r.Header.Get("X-Api-Key") != "k1" || r.Header.Get("Authorization") != "" ||
			r.Header.Get("Anthropic-Version") != "2023-06-01" || string(body) == "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		for name := range f.Header {
			w.Header().Set(name, f.Header.Get(name))
		}
		w.WriteHeader(f.Status)
		_, _ = w.Write(f.Body)
	}))
	t.Cleanup(server.Close)
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	d := dialect.Translated{Client: client, Translator: anthropic.Translator{}}
	call := func(file string, stream bool) (int, string) {
		answers <- fixtures.Get(file)
		resp, err := d.Chat(context.WithoutCancel(t.Context()), upstream.Call{
			URL: server.URL + "?tenant=a", Key: "k1", Header: http.Header{}, Stream: stream, HeadersTimeout: time.Minute, RequestTimeout: time.Minute,
			Body: []byte(`{"model":"beta-1","messages":[{"role":"user","content":"hi"}]}`),
		})
		require.NoError(t, err)
		defer resp.Close()
		body, err := answertest.Body(resp)
		require.NoError(t, err)
		return resp.Status, body
	}

	status, body := call("anthropic/message-text.json", false)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, `"content":"The lamp is green."`)
	status, body = call("anthropic/stream-text.sse", true)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, openai.Done)
	status, body = call("anthropic/error-529.json", true)
	require.Equal(t, 529, status)
	require.Equal(t, string(fixtures.Get("anthropic/error-529.json").Body), body)
}
