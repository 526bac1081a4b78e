package dispatcher_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher"
	"hydrallm/services/dispatcher/internal/dialect/dialecttest"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/testkit/fakellm"
)

func init() {
	dispatcher.AddDialect("telegraph", config.Dialect{Version: "/wire"}, dialecttest.Telegraph{})
}

// every dialect of the configuration is spoken, and no other.
func TestDialectsAreSpoken(t *testing.T) {
	t.Parallel()
	require.Len(t, config.Dialects, dispatcher.Kinds())
	for word := range config.Dialects {
		require.True(t, dispatcher.Spoken(word), word)
	}
}

// a dialect is a package and its name in two tables, and nothing else has to know it: it has a word in the configuration, the keys,
// streams, whole answers, failover and errors of all others.
func TestDialectIsAdded(t *testing.T) {
	t.Parallel()
	p := setup(t)
	text := func(word string) string {
		return `
providers:
  - {id: office, dialect: ` + word + `, url: "` + p.upstream.URL() + `", key: key-of-the-operator}
  - {id: plain, url: "` + p.upstream.URL() + `", key: key-of-the-other}
upstreams: [{id: wire, provider: office, model: morse}, {id: post, provider: plain, model: paper}]
models: [{name: m, upstreams: [wire, post]}]
`
	}
	_, _, err := config.Environment{Lookup: func(string) (string, bool) { return "", false }}.Parse("config.yaml", []byte(text("telegraf")))
	require.ErrorContains(t, err, "did you mean telegraph?")
	p.start("d", text("Telegraph"))
	sheet := fakellm.JSON(http.StatusOK, `{"words":"all well"}`)
	p.upstream.Handle(func(r fakellm.Request) fakellm.Answer {
		switch r.Path {
		case "/wire/sheet":
			return sheet
		case "/wire/tape":
			return fakellm.SSE(`{"word":"all "}`, `{"word":"well"}`, `{"stop":true}`)
		}
		return fakellm.Talk("by post")(r)
	})

	p.ask("whole", plainBody)
	got := p.await("whole")
	require.Equal(t, http.StatusOK, got.status, got.body)
	require.Equal(t, "all well", gjson.Get(got.body, "choices.0.message.content").Str, got.body)
	call := p.upstream.Requests()[0]
	require.JSONEq(t, `{"to":"morse","words":"hi"}`, string(call.Body))
	require.Equal(t, []string{"key-of-the-operator", ""}, []string{call.Header.Get("X-Operator"), call.Key()})

	p.ask("stream", streamBody)
	got = p.await("stream")
	require.Contains(t, got.body, `"content":"well"`)
	require.Contains(t, got.body, "data: [DONE]")

	p.ask("named", plainBody, func(r *contract.Request) {
		r.Model, r.Decision = "office/morse", &contract.Decision{Provider: "office", Model: "morse", PinProvider: true, PinModel: true, Reason: contract.ReasonModelHint}
	})
	got = p.await("named")
	require.Equal(t, "all well", gjson.Get(got.body, "choices.0.message.content").Str, got.body)
	require.Equal(t, "office", gjson.Get(got.body, "usage.gateway_provider").Str)

	p.ask("other", `{"model":"m","tools":[{"type":"function","function":{"name":"f"}}],"messages":[{"role":"user","content":"hi"}]}`)
	got = p.await("other")
	require.Equal(t, http.StatusBadRequest, got.status, "what the dialect can't say is the client's affair")
	require.Equal(t, "tools", gjson.Get(got.body, "error.param").Str, got.body)
	p.upstream.Queue(fakellm.JSON(http.StatusTooManyRequests, `{"stop":"the line is busy"}`))
	p.ask("busy", plainBody)
	require.Contains(t, p.await("busy").body, "by post", "a failure of this dialect is one of any")
}
