package opencode

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
)

// Events as the server sends them.
const (
	partBegins = `{"type":"message.part.updated","properties":{"part":{"id":"prt_3","sessionID":"ses_fx01","messageID":"msg_fx02","type":"text","text":""}}}`
	theLamp    = `{"type":"message.part.delta","properties":{"sessionID":"ses_fx01","messageID":"msg_fx02","partID":"prt_3","field":"text","delta":"The lamp"}}`
	isIdle     = `{"type":"session.idle","properties":{"sessionID":"ses_fx01"}}`
)

func TestWholeAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(says("message.json", fixtureEvents(t)...)))
		resp, err := w.Chat(t.Context(), request(false))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, resp.Status)
		require.JSONEq(t, `{"id":"chatcmpl-ses_fx01","object":"chat.completion","created":1790000000,"model":"vendor/xi-1","choices":[{"index":0,
			"message":{"role":"assistant","content":"The lamp is green.","reasoning_content":"Look.","refusal":null},"logprobs":null,"finish_reason":"stop"}],
			"usage":{"prompt_tokens":30,"completion_tokens":8,"total_tokens":38,"prompt_tokens_details":{"cached_tokens":0},
			"completion_tokens_details":{"reasoning_tokens":2}}}`, readAll(t, resp))

		w.Close()
		require.Equal(t, []string{
			"GET /global/health", "POST /session", "GET /event", "POST /session/ses_fx01/message", "DELETE /session/ses_fx01",
		}, w.fake.paths())
		require.Equal(t, basicAuth("opencode", "secret"), w.fake.headers.Get("Authorization"))
		require.Equal(t, "1", w.fake.headers.Get("X-Own"))
		require.JSONEq(t, `{"model":{"providerID":"vendor","modelID":"xi-1"},"system":"Be brief.","tools":{"*":false},
			"parts":[{"type":"text","text":"Which lamp?"}]}`, w.fake.body("POST /session/ses_fx01/message"))
	})
}

func TestStreamComesAsItIsMade(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		w := setup(t, newFake(func(f *fake, rw http.ResponseWriter, r *http.Request) {
			events := fixtureEvents(t)
			f.tell(r, events[:2]...)
			<-goOn
			f.tell(r, events[2:]...)
			answerJSON(rw, http.StatusOK, string(fixtures.Get("opencode/message.json").Body))
		}))
		resp, err := w.Chat(t.Context(), request(true))
		require.NoError(t, err)
		events := resp.Events(nil)
		for _, want := range []string{`"assistant"""`, `"The lamp"`} {
			c, err := events.Next()
			require.NoError(t, err)
			require.Equal(t, want, string(c.Choices[0].Role)+string(c.Choices[0].Content))
		}
		close(goOn)
		rest := readAll(t, resp)
		require.NotContains(t, rest, "other") // of another session
		require.True(t, strings.HasSuffix(rest, openai.Done))
	})
}

// The whole text of a part, a piece of it, and the answer to the message all bring the same text; it must come once (facts 3.15).
func TestStreamHasEachTextOnce(t *testing.T) {
	t.Parallel()
	hidden := []string{
		`{"type":"message.updated","properties":{"info":{"id":"msg_s","sessionID":"ses_fx01","role":"assistant","summary":true}}}`,
		`{"type":"message.part.updated","properties":{"part":{"id":"prt_s","sessionID":"ses_fx01","messageID":"msg_s","type":"text","text":"a summary"}}}`,
		`{"type":"message.part.updated","properties":{"part":{"id":"prt_u","sessionID":"ses_fx01","messageID":"msg_fx01","type":"text","text":"the question"}}}`,
		`{"type":"message.part.updated","properties":{"part":{"id":"prt_y","sessionID":"ses_fx01","messageID":"msg_fx02","type":"text","text":"made up","synthetic":true}}}`,
		`{"type":"message.part.delta","properties":{"sessionID":"ses_fx01","messageID":"msg_fx02","partID":"prt_?","field":"text","delta":"of no part"}}`,
		`{"type":"message.part.delta","properties":{"sessionID":"ses_fx01","messageID":"msg_fx02","partID":"prt_3","field":"other","delta":"of no text"}}`,
		`not JSON`,
	}
	for name, events := range map[string]func(t *testing.T) []string{
		"fixture":        fixtureEvents,
		"only pieces":    func(*testing.T) []string { return []string{partBegins, theLamp, isIdle} },
		"nothing":        func(*testing.T) []string { return nil },
		"whole and more": func(t *testing.T) []string { t.Helper(); return append(fixtureEvents(t)[:3], partBegins) },
		"what is hidden": func(t *testing.T) []string { t.Helper(); return append(fixtureEvents(t)[:2], hidden...) },
		"white space that is cut off later": func(*testing.T) []string {
			return []string{
				partBegins, theLamp,
				`{"type":"message.part.delta","properties":{"sessionID":"ses_fx01","messageID":"msg_fx02","partID":"prt_3","field":"text","delta":" is green.\n"}}`,
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, newFake(says("message.json", events(t)...)))
				resp, err := w.Chat(t.Context(), request(true))
				require.NoError(t, err)
				got := collect(t, readAll(t, resp))
				require.Equal(t, "The lamp is green.", strings.TrimSpace(gjson.Get(got, "choices.0.message.content").Str))
				require.Equal(t, "stop", gjson.Get(got, "choices.0.finish_reason").Str)
				require.EqualValues(t, 38, gjson.Get(got, "usage.total_tokens").Int())
				require.Equal(t, "vendor/xi-1", gjson.Get(got, "model").Str)
			})
		})
	}
}

// The answer to the message has all of it, so a stream whose events break off still ends well.
func TestCutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(func(f *fake, rw http.ResponseWriter, r *http.Request) {
			f.tell(r, partBegins, theLamp)
			close(f.cut)
			time.Sleep(time.Minute) //nolint:forbidigo // fake time: the turn goes on without events
			answerJSON(rw, http.StatusOK, string(fixtures.Get("opencode/message.json").Body))
		}))
		resp, err := w.Chat(t.Context(), request(true))
		require.NoError(t, err)
		require.Equal(t, "The lamp is green.", gjson.Get(collect(t, readAll(t, resp)), "choices.0.message.content").Str)
	})
}

// The event that says that the turn is over is enough if the answer to the message gets lost.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(func(f *fake, _ http.ResponseWriter, r *http.Request) {
			f.tell(r, fixtureEvents(t)...)
			<-r.Context().Done()
		}))
		began := time.Now()
		resp, err := w.Chat(t.Context(), request(true))
		require.NoError(t, err)
		got := collect(t, readAll(t, resp))
		require.Equal(t, "The lamp is green.", gjson.Get(got, "choices.0.message.content").Str)
		require.EqualValues(t, 38, gjson.Get(got, "usage.total_tokens").Int())
		require.Equal(t, settling, time.Since(began))
	})
}

func TestPermissionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ event, path, body string }{
		{
			`{"type":"permission.asked","properties":{"id":"per_1","sessionID":"ses_fx01","permission":"bash","patterns":["*"]}}`,
			"POST /session/ses_fx01/permissions/per_1", `{"response":"reject"}`,
		},
		{
			`{"type":"permission.updated","properties":{"id":"per_2","sessionID":"ses_fx01","type":"edit","title":"x"}}`,
			"POST /session/ses_fx01/permissions/per_2", `{"response":"reject"}`,
		},
		{`{"type":"question.asked","properties":{"id":"que_1","sessionID":"ses_fx01","questions":[]}}`, "POST /question/que_1/reject", ``},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, newFake(func(f *fake, rw http.ResponseWriter, r *http.Request) {
					f.tell(r, partBegins, strings.ReplaceAll(c.event, "ses_fx01", "ses_other"), c.event)
					time.Sleep(time.Second) //nolint:forbidigo // fake time: the turn stands still until it is answered
					answerJSON(rw, http.StatusOK, string(fixtures.Get("opencode/message.json").Body))
				}))
				resp, err := w.Chat(t.Context(), request(true))
				require.NoError(t, err)
				readAll(t, resp)
				require.Equal(t, c.body, w.fake.body(c.path))
				for _, path := range w.fake.paths() {
					require.NotContains(t, path, "ses_other")
				}
			})
		})
	}
}

var errLeft = errors.New("the client left")

func TestCancelledTurnIsStopped(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, newFake(func(f *fake, _ http.ResponseWriter, r *http.Request) {
				f.tell(r, partBegins, theLamp)
				<-r.Context().Done()
			}))
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Minute, func() { cancel(errLeft) })
			resp, err := w.Chat(ctx, request(streaming))
			if streaming {
				require.NoError(t, err)
				_, err = answertest.Body(resp)
				resp.Close()
				resp.Close() // a response may be closed twice
			}
			require.ErrorIs(t, err, errLeft)
			w.Close()
			seen := w.fake.paths()
			require.Equal(t, []string{"POST /session/ses_fx01/abort", "DELETE /session/ses_fx01"}, seen[len(seen)-2:])
		})
	}
}

// A client may leave without a word, by closing the response.
func TestClosedResponseStopsTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(func(f *fake, _ http.ResponseWriter, r *http.Request) {
			f.tell(r, partBegins, theLamp, theLamp, theLamp) // which nobody reads
			<-r.Context().Done()
		}))
		resp, err := w.Chat(t.Context(), request(true))
		require.NoError(t, err)
		resp.Close()
		w.Close()
		require.Contains(t, w.fake.paths(), "POST /session/ses_fx01/abort")
	})
}

// a slow server runs into the limits of the call, and a cleanup that hangs is given up.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turn  func(f *fake, w http.ResponseWriter, r *http.Request)
		want  error
		after time.Duration
	}{
		"nothing comes": {
			func(_ *fake, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			classify.ErrHeaderTimeout, 240 * time.Second,
		},
		"it never ends": {
			func(f *fake, _ http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					f.tell(r, partBegins, theLamp)
					select {
					case <-time.After(10 * time.Second):
					case <-r.Context().Done():
					}
				}
			},
			classify.ErrTotalTimeout, 300 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, newFake(c.turn))
				began := time.Now()
				resp, err := w.Chat(t.Context(), request(true))
				if err == nil {
					_, err = answertest.Body(resp)
					resp.Close()
				}
				require.ErrorIs(t, err, c.want)
				require.Equal(t, c.after, time.Since(began))
			})
		})
	}
}

func TestHungCleanupIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(says("message.json"))
		hangs := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodDelete {
				<-r.Context().Done()
				return
			}
			f.ServeHTTP(w, r)
		})
		w := setupHandler(t, f, hangs)
		resp, err := w.Chat(t.Context(), request(false))
		require.NoError(t, err)
		readAll(t, resp)
		began := time.Now()
		w.Close()
		require.Equal(t, cleanupLimit, time.Since(began))
	})
}

func TestHealth(t *testing.T) {
	t.Parallel()
	for health, want := range map[string]string{"": "1.18.0", `{"healthy":false,"version":"2"}`: "", `<html>`: ""} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, newFake(nil))
			w.fake.health = health
			version, err := w.Health(t.Context(), request(false)) // B-41
			require.Equal(t, want, version)
			require.Equal(t, want == "", err != nil)
			gone := request(false)
			gone.URL = "http://nobody"
			_, err = w.Health(t.Context(), gone)
			require.Error(t, err)
		})
	}
}

func TestEmbeddingsAreNotOffered(t *testing.T) {
	t.Parallel()
	_, err := New(Config{}, nil).Embed(t.Context(), upstream.Call{})
	require.ErrorIs(t, err, dialect.ErrUnsupported)
}

func TestOperatorsHeaderWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, newFake(says("message.json")))
		call := request(false)
		call.URL += "?directory=%2Fw"
		call.Header.Set("Authorization", basicAuth("me", "mine"))
		call.Body = []byte(`{"model":"auto","messages":[{"role":"user","content":[{"type":"text","text":"What is it?"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`)
		resp, err := w.Chat(t.Context(), call)
		require.NoError(t, err)
		readAll(t, resp)
		require.Equal(t, basicAuth("me", "mine"), w.fake.headers.Get("Authorization"))
		require.JSONEq(t, `{"tools":{"*":false},"parts":[{"type":"text","text":"What is it?\n\n(attachment 1: image)"},
			{"type":"file","mime":"image/png","filename":"image","url":"data:image/png;base64,aGk="}]}`,
			w.fake.body("POST /session/ses_fx01/message"))
	})
}

// A turn may have several messages, of which the answer holds the last only. Both messengers must be heard, whoever comes first.
func TestTurnOfSeveralMessages(t *testing.T) {
	t.Parallel()
	for _, streaming := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, newFake(func(f *fake, rw http.ResponseWriter, r *http.Request) {
				answerJSON(rw, http.StatusOK, string(fixtures.Get("opencode/message.json").Body))
				_ = http.NewResponseController(rw).Flush()
				f.tell(r,
					`{"type":"message.updated","properties":{"info":{"id":"msg_a","sessionID":"ses_fx01","role":"assistant","finish":"tool-calls",
						"tokens":{"input":10,"output":2,"cache":{"read":1,"write":4}}}}}`,
					`{"type":"message.part.updated","properties":{"part":{"id":"prt_a","sessionID":"ses_fx01","messageID":"msg_a","type":"text","text":"Let me see. "}}}`,
					isIdle)
			}))
			began := time.Now()
			resp, err := w.Chat(t.Context(), request(streaming))
			require.NoError(t, err)
			got := readAll(t, resp)
			if streaming {
				got = collect(t, got)
			}
			require.Equal(t, "Let me see. The lamp is green.", gjson.Get(got, "choices.0.message.content").Str)
			require.Equal(t, "stop", gjson.Get(got, "choices.0.finish_reason").Str)
			require.EqualValues(t, 30+10+1+4, gjson.Get(got, "usage.prompt_tokens").Int())
			require.Zero(t, time.Since(began), "nothing is waited for in vain")
		})
	}
}
