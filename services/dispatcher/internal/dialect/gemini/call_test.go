package gemini_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// a whole call over HTTP, as a stream, as JSON, and one that is refused.
func TestCall(t *testing.T) {
	t.Parallel()
	answers := map[string]fixtures.Fixture{
		"/v1beta/models/gamma-flash:streamGenerateContent?alt=sse": fixtures.Get("gemini-native/stream-text.sse"),
		"/v1beta/models/gamma-flash:generateContent":               fixtures.Get("gemini-native/generate.json"),
		"/v1beta/models/busy:generateContent":                      fixtures.Get("gemini-native/error-429.json"),
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := answers[r.URL.String()]
		body, err := io.ReadAll(r.Body)
		if !ok || err != nil || r.Header.Get("X-Goog-Api-Key") != "k1" || r.Header.Get("Authorization") != "" || !gjson.GetBytes(body, "contents.0").Exists() {
			http.Error(w, "unexpected call of "+r.URL.String(), http.StatusTeapot)
			return
		}
		w.Header().Set("Content-Type", f.Header.Get("Content-Type"))
		w.WriteHeader(f.Status)
		_, _ = w.Write(f.Body)
	}))
	t.Cleanup(srv.Close)
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	d := dialect.Translated{Client: client, Translator: gemini.Translator{}}
	call := func(model string, stream bool) (status int, body string) {
		resp, err := d.Chat(t.Context(), upstream.Call{
			URL: srv.URL + "/v1beta", Key: "k1", Header: http.Header{}, Stream: stream, Body: []byte(`{"model":"` + model + `",` + hello + `}`),
			HeadersTimeout: time.Minute, RequestTimeout: time.Minute,
		})
		require.NoError(t, err)
		defer resp.Close()
		text, err := answertest.Body(resp)
		require.NoError(t, err)
		return resp.Status, text
	}

	status, body := call("gamma-flash", true)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "The lamp is green.", relay(t, body).body.Get("choices.0.message.content").Str)
	status, body = call("models/gamma-flash", false)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "The lamp is green.", gjson.Get(body, "choices.0.message.content").Str)
	status, body = call("busy", false)
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Equal(t, string(fixtures.Get("gemini-native/error-429.json").Body), body)
}

// embeddings use the same address and key.
func TestEmbedCall(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta/models/emb:batchEmbedContents" || r.Header.Get("X-Goog-Api-Key") != "k1" || r.Header.Get("Authorization") != "" {
			http.Error(w, "unexpected call of "+r.URL.String(), http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, `{"embeddings":[{"values":[0.5]}]}`)
	}))
	t.Cleanup(srv.Close)
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	d := dialect.Translated{Client: client, Translator: gemini.Translator{}}
	resp, err := d.Embed(t.Context(), upstream.Call{
		URL: srv.URL + "/v1beta", Key: "k1", Header: http.Header{}, Body: []byte(`{"model":"emb","input":"a"}`),
		HeadersTimeout: time.Minute, RequestTimeout: time.Minute,
	})
	require.NoError(t, err)
	defer resp.Close()
	require.Equal(t, http.StatusOK, resp.Status)
}
