package opencode

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// sessionError is the event of a failure.
func sessionError(name, data string) string {
	return `{"type":"session.error","properties":{"sessionID":"ses_fx01","error":` + errorJSON(name, data) + `}}`
}

func errorJSON(name, data string) string { return `{"name":"` + name + `","data":` + data + `}` }

// withError is the answer to a message whose turn failed.
func withError(name, data string) string {
	return `{"info":{"id":"msg_fx02","role":"assistant","error":` + errorJSON(name, data) + `},"parts":[]}`
}

// failing is a turn that tells these events and ends with this answer, or with none.
func failing(status int, answer string, events ...string) func(f *fake, w http.ResponseWriter, r *http.Request) {
	return func(f *fake, w http.ResponseWriter, r *http.Request) {
		f.tell(r, events...)
		if answer == "" {
			<-r.Context().Done()
			return
		}
		answerJSON(w, status, answer)
	}
}

// R-100, facts 3.15: what fails inside a 200 has the status that it should have had, and the class that follows from it.
func TestFailures(t *testing.T) {
	t.Parallel()
	overloaded := `{"message":"Overloaded","isRetryable":true}`
	for name, c := range map[string]struct {
		turn   func(f *fake, w http.ResponseWriter, r *http.Request)
		status int
		class  classify.Class
		wait   time.Duration
	}{
		"rate limit": {turn: says("message-error.json"), status: 429, class: classify.Rate, wait: 9 * time.Second},
		"key":        {turn: says("message-auth-error.json"), status: 401, class: classify.Auth},
		"no session": {turn: says("error-404.json"), status: 404, class: classify.BadOutput},
		"overload":   {turn: failing(200, withError("APIError", overloaded)), status: 503, class: classify.Upstream},
		"quota that may be tried again": {
			turn:   failing(200, withError("APIError", `{"message":"Quota exceeded","isRetryable":true}`)),
			status: 429, class: classify.Rate,
		},
		"bad request": {
			turn:   failing(200, withError("APIError", `{"message":"No","statusCode":400,"isRetryable":false}`)),
			status: 400, class: classify.Client,
		},
		"context": {
			turn:   failing(200, withError("ContextOverflowError", `{"message":"Too many words"}`)),
			status: 400, class: classify.Size,
		},
		// The session would go on by making a summary, which is no answer to anyone.
		"context, as an event": {
			turn:   failing(200, "", sessionError("ContextOverflowError", `{"message":"Too many words"}`)),
			status: 400, class: classify.Size,
		},
		"filter":     {turn: failing(200, withError("ContentFilterError", `{"message":"No"}`)), status: 400, class: classify.Client},
		"structured": {turn: failing(200, withError("StructuredOutputError", `{"message":"No","retries":1}`)), status: 422, class: classify.BadOutput},
		"aborted":    {turn: failing(200, withError("MessageAbortedError", `{"message":"Aborted"}`)), status: 503, class: classify.Upstream},
		"unknown":    {turn: failing(200, withError("UnknownError", `{"message":"What?"}`)), status: 502, class: classify.Upstream},
		"finish":     {turn: failing(200, `{"info":{"role":"assistant","finish":"error"},"parts":[]}`), status: 502, class: classify.Upstream},
		"no message": {turn: failing(200, `[]`), status: 502, class: classify.Upstream},
		"not JSON":   {turn: failing(200, `oh`), status: 502, class: classify.Upstream},
		"an event of the message": {
			turn: failing(200, "", `{"type":"message.updated","properties":{"info":{"id":"msg_fx02","sessionID":"ses_fx01","role":"assistant","error":`+
				errorJSON("APIError", overloaded)+`}}}`),
			status: 503, class: classify.Upstream,
		},
		"model": {
			turn: failing(500, errorJSON("UnknownError", `{"message":"Unexpected server error. Check server logs for details.","ref":"err_1"}`),
				sessionError("UnknownError", `{"message":"Model not found: vendor/xi-1."}`)),
			status: 404, class: classify.Model,
		},
		"unexpected": {
			turn:   failing(500, errorJSON("UnknownError", `{"message":"Unexpected server error."}`)),
			status: 500, class: classify.Upstream,
		},
		// OpenCode would try for as long as it takes.
		"a call that will be repeated": {
			turn:   failing(200, "", `{"type":"session.status","properties":{"sessionID":"ses_fx01","status":{"type":"retry","attempt":1,"message":"Overloaded","next":0}}}`),
			status: 503, class: classify.Upstream,
		},
		"a limit that will be waited for": {
			turn:   failing(200, "", `{"type":"session.status","properties":{"sessionID":"ses_fx01","status":{"type":"retry","attempt":1,"message":"Too Many Requests","next":0}}}`),
			status: 429, class: classify.Rate,
		},
		"message": {
			turn:   failing(400, errorJSON("BadRequest", `{"message":"Expected array","kind":"Payload"}`)),
			status: 400, class: classify.Client,
		},
	} {
		for _, streaming := range []bool{true, false} {
			t.Run(fmt.Sprint(name, streaming), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := setup(t, newFake(c.turn))
					resp, err := w.Chat(t.Context(), request(streaming))
					require.NoError(t, err)
					require.Equal(t, c.status, resp.Status)
					v := judge(t, resp)
					require.Equal(t, c.class, v.Class, "%+v", v)
					if c.wait != 0 {
						require.Equal(t, c.wait, v.Wait)
					}
					w.Close()
					require.Contains(t, w.fake.paths(), "DELETE /session/ses_fx01")
				})
			})
		}
	}
}

func judge(t *testing.T, resp *dialect.Response) classify.Verdict {
	t.Helper()
	return classify.Of(classify.Answer{Provider: "opencode", Status: resp.Status, Header: resp.Header, Body: []byte(readAll(t, resp))})
}

// What went over the wire can't be taken back: then an event says that the answer broke off, and [DONE] is missing.
func TestFailureAfterTheBeginning(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   string
		class classify.Class
	}{
		"failure": {sessionError("APIError", `{"message":"Rate limited","statusCode":429,"isRetryable":true}`), classify.Rate},
		"key":     {sessionError("ProviderAuthError", `{"message":"no \"key\"","providerID":"vendor"}`), classify.Auth},
		"repeat": {
			`{"type":"session.status","properties":{"sessionID":"ses_fx01","status":{"type":"retry","attempt":1,"message":"Overloaded","next":0}}}`,
			classify.Upstream,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, newFake(failing(200, "", partBegins, theLamp, c.end)))
				resp, err := w.Chat(t.Context(), request(true))
				require.NoError(t, err)
				text := readAll(t, resp)
				require.NotContains(t, text, openai.Done)
				last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]
				data, _ := strings.CutPrefix(strings.TrimSpace(last), "data: ")
				require.True(t, gjson.Get(data, "error").IsObject(), data)
				v := classify.Of(classify.Answer{Status: 200, Event: true, Body: []byte(data)})
				require.Equal(t, c.class, v.Class)
			})
		})
	}
}

// A model that ran out of room has answered, though not to the end.
func TestOutputLength(t *testing.T) {
	t.Parallel()
	for name, turn := range map[string]func(f *fake, w http.ResponseWriter, r *http.Request){
		"in the answer": failing(200, withError("MessageOutputLengthError", `{}`), partBegins, theLamp),
		"as an event":   failing(200, "", partBegins, theLamp, sessionError("MessageOutputLengthError", `{}`)),
		"as a finish":   failing(200, `{"info":{"id":"m","role":"assistant","finish":"length"},"parts":[]}`, partBegins, theLamp),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, newFake(turn))
				resp, err := w.Chat(t.Context(), request(true))
				require.NoError(t, err)
				got := collect(t, readAll(t, resp))
				require.Equal(t, "The lamp", gjson.Get(got, "choices.0.message.content").Str)
				require.Equal(t, "length", gjson.Get(got, "choices.0.finish_reason").Str)
			})
		})
	}
}

func TestServersThatRefuse(t *testing.T) {
	t.Parallel()
	refuses := func(path string, status int, body string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == path {
					answerJSON(w, status, body)
					return
				}
				next.ServeHTTP(w, r)
			})
		}
	}
	for name, c := range map[string]struct {
		wrap   func(http.Handler) http.Handler
		status int
		class  classify.Class
	}{
		"password":       {refuses("/global/health", 401, ""), 401, classify.Auth},
		"another server": {refuses("/global/health", 404, "404 page not found"), 404, classify.Model},
		"a page":         {refuses("/global/health", 200, "<html></html>"), 502, classify.Upstream},
		"not well":       {refuses("/global/health", 200, `{"healthy":false}`), 502, classify.Upstream},
		"session":        {refuses("/session", 500, `{"name":"UnknownError","data":{"message":"disk full"}}`), 500, classify.Upstream},
		"no id":          {refuses("/session", 200, `{}`), 502, classify.Upstream},
		"events":         {refuses("/event", 503, ``), 503, classify.Upstream},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFake(says("message.json"))
				w := setupHandler(t, f, c.wrap(f))
				resp, err := w.Chat(t.Context(), request(true))
				require.NoError(t, err)
				require.Equal(t, c.status, resp.Status)
				require.Equal(t, c.class, judge(t, resp).Class)
			})
		})
	}
}

// An agent calls no tools of the client, and a name without a provider is no model.
func TestRequestsThatCanNotBeAsked(t *testing.T) {
	t.Parallel()
	a := New(Config{}, nil)
	call := request(false)
	call.Body = []byte(`{"model":"","tool_choice":"required","messages":[]}`)
	_, err := a.Chat(t.Context(), call)
	var refused *openai.RequestError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "tool_choice", refused.Param)

	call.Body = []byte(`{"model":"xi-1","messages":[{"role":"user","content":"hi"}]}`)
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, classify.Model, judge(t, resp).Class)
}

// What OpenCode said of an error is passed on as it is.
func TestErrorsKeepTheirWords(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(says("message-error.json")))
		resp, err := w.Chat(t.Context(), request(false))
		require.NoError(t, err)
		require.Equal(t, gjson.GetBytes(fixtures.Get("opencode/message-error.json").Body, "info.error").Raw, readAll(t, resp))
	})
}
