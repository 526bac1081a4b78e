package execute_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/anthropic"
	"hydrallm/services/dispatcher/internal/execute"
	"hydrallm/services/dispatcher/internal/keypool"
	"hydrallm/shared/contract"
)

const (
	overflow = `{"error":{"message":"This model's maximum context length is 8192 tokens","type":"invalid_request_error","code":"context_length_exceeded"}}`
	noModel  = `{"error":{"message":"The model does not exist","type":"invalid_request_error","code":"model_not_found"}}`
	noMoney  = `{"error":{"message":"Insufficient Balance","type":"billing_error"}}`
)

// routed executes an automatic request whose chain is that of the world; change may alter the decision.
func (w *world) routed(ctx context.Context, body string, change ...func(*contract.Decision)) (*answer, execute.Outcome) {
	j := job(body)
	j.Request.Model, j.Request.Decision = "auto", &contract.Decision{Provider: "pa", Model: "real-a", Reason: contract.ReasonTokenCount}
	for _, fn := range change {
		fn(j.Request.Decision)
	}
	var a answer
	out := w.exec.Run(ctx, j, &a)
	return &a, out
}

func strict(d *contract.Decision) { d.PinProvider = true }
func named(d *contract.Decision)  { d.PinModel = true }

// link changes one link of the chain.
func (w *world) link(id string, change func(*execute.Link)) {
	links := w.plan.chain.Links
	for i := range links {
		if links[i].Channel.ID == id {
			change(&links[i])
		}
	}
	w.plan.chain = execute.NewChain(links)
}

func large(l *execute.Link)      { l.Large = true }
func lastResort(l *execute.Link) { l.LastResort = true }

// C-07: the answer says who gave it, why, and what failed before.
func TestRoutedAnswerDiscloses(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a"), "b": reply("b")}, func(w *world) {
		t := w.t
		got, out := w.routed(t.Context(), plainBody)
		body := gjson.Parse(got.text())
		require.Equal(t, "auto", body.Get("model").Str)
		require.Equal(t, "pa", body.Get("usage.gateway_provider").Str)
		require.Equal(t, "real-a", body.Get("usage.gateway_model").Str)
		require.Equal(t, "TOKEN_OPTIMIZED", body.Get("usage.routing_reason").Str)
		require.EqualValues(t, 3, body.Get("usage.total_tokens").Int())
		require.False(t, body.Get("choices.0.message.parts").Exists())
		require.Equal(t, "TOKEN_OPTIMIZED", got.header("X-Routing-Reason"))
		require.Equal(t, contract.ReasonTokenCount, out.Usage.RoutingReason)
	})
	bubble(t, map[string]handler{"a": status(500, "{}"), "b": reply("b")}, func(w *world) {
		t := w.t
		got, out := w.routed(t.Context(), plainBody)
		body := gjson.Parse(got.text())
		require.Equal(t, "KEY_AVAILABILITY", body.Get("usage.routing_reason").Str)
		require.JSONEq(t, `[{"type":"retry","data":{"attempt":1,"provider":"pa","error":"http 500","error_code":500,"fallback_to":"pb"}}]`,
			body.Get("choices.0.message.parts").Raw)
		require.Equal(t, contract.ReasonKeyAvailability, out.Usage.RoutingReason)
	})
	bubble(t, map[string]handler{"a": status(429, "{}"), "b": reply("b")}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, "RATE_LIMIT", gjson.Get(got.text(), "usage.routing_reason").Str)
	})
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) { // no model of the decided provider can be called, so that it is not in the chain
		got, _ := w.routed(w.t.Context(), plainBody, func(d *contract.Decision) { d.Provider = "elsewhere" })
		require.Equal(w.t, "KEY_AVAILABILITY", gjson.Get(got.text(), "usage.routing_reason").Str)
	})
}

// the same in a stream.
func TestRoutedStreamDiscloses(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		t := w.t
		body := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
		got, _ := w.routed(t.Context(), body)
		require.Contains(t, got.text(), `"model":"auto"`)
		require.NotContains(t, got.text(), `"model":"m"`)
		require.Contains(t, got.text(), `"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"gateway_provider":"pa"`)
	})
}

// answers of local agents.
func TestAgentAnswerDiscloses(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody)
		usage := gjson.Get(got.text(), "usage")
		require.Equal(w.t, "LOCAL-AGENT", usage.Get("gateway_provider").Str)
		require.Equal(w.t, "LOCAL-AGENT/OLLAMA/real-a", usage.Get("gateway_model").Str)
		require.Equal(w.t, "LOCAL-AGENT", got.header("X-Gateway-Provider"))
		require.Zero(w.t, usage.Get("gateway_key_index").Int())
	}, func(c *execute.Channel) { c.Agent = "OLLAMA" })
}

// C-09, R-118: an empty balance is final for who asked for this provider, and a reason to go on otherwise.
func TestPaymentUnderAuto(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*contract.Decision)
		want   int
	}{
		"auto":   {func(*contract.Decision) {}, http.StatusOK},
		"strict": {strict, http.StatusPaymentRequired},
		"named":  {named, http.StatusPaymentRequired},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": status(402, noMoney), "b": reply("b")}, func(w *world) {
				got, _ := w.routed(w.t.Context(), plainBody, tc.change)
				require.Equal(w.t, tc.want, got.head.Status)
			})
		})
	}
}

// C-43, R-101: a model that is gone is the gateway's mistake if the gateway chose it, and the client's if the client did.
func TestMissingModelUnderAuto(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(404, noModel), "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody)
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Equal(t, []string{"pa/real-a"}, w.plan.absent)
		got, _ = w.routed(t.Context(), plainBody, named)
		require.Equal(t, http.StatusNotFound, got.head.Status)
		require.Equal(t, []string{"pa/real-a"}, w.plan.absent)
		require.Equal(t, 1, w.called("b"))
	})
}

// A request that only the provider for large ones could take has to wait when that one is ill, whichever is asked first.
func TestTooLargeWhileTheLargeOneIsIll(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"a", "b"} {
		other := map[string]string{"a": "b", "b": "a"}[first]
		bubble(t, map[string]handler{first: status(503, "{}"), other: status(400, overflow)}, func(w *world) {
			w.link(first, large)
			got, _ := w.routed(w.t.Context(), plainBody)
			require.Equal(w.t, http.StatusServiceUnavailable, got.head.Status)
			require.Equal(w.t, 1, w.called("a"))
			require.Equal(w.t, 1, w.called("b"))
		})
	}
}

// model answers one model well and others with a refusal.
func model(good, text string, refuse handler) handler {
	return func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		if gjson.GetBytes(body, "model").Str == good {
			reply(text)(w, r, n)
			return
		}
		refuse(w, r, n)
	}
}

// C-43, R-133: a provider that lacks one model is asked for another after everyone else, and one whose keys are at the limit of one before; not
// so for what the client named.
func TestAnotherModelOfTheProvider(t *testing.T) {
	t.Parallel()
	perModel := `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}`
	for name, tc := range map[string]struct {
		refuse handler
		models []string
		change []func(*contract.Decision)
		pool   bool
		only   int     // so many providers, 0 = both
		b      handler // the second provider; nil: it answers
		want   string  // provider, "" for none
		status int     // without an answer
		calls  int     // of the first provider
	}{
		"missing":           {refuse: status(404, noModel), models: []string{"old", "new"}, want: "pb", calls: 1},
		"missing, alone":    {refuse: status(404, noModel), models: []string{"old", "new"}, change: []func(*contract.Decision){strict}, only: 1, want: "pa", calls: 2},
		"missing, b is ill": {refuse: status(404, noModel), models: []string{"old", "new"}, b: status(503, "{}"), want: "pa", calls: 2},
		"all are missing":   {refuse: status(404, noModel), models: []string{"1", "2", "3", "4", "5"}, only: 1, status: 503, calls: 3},
		"no other":          {refuse: status(404, noModel), models: []string{"old", "old"}, only: 1, status: 503, calls: 1},
		"named":             {refuse: status(404, noModel), models: []string{"old", "new"}, change: []func(*contract.Decision){named}, status: 404, calls: 1},
		"at its limit":      {refuse: status(429, perModel), models: []string{"old", "new"}, pool: true, want: "pa", calls: 3},
		"the key's limit":   {refuse: status(429, "{}"), models: []string{"old", "new"}, pool: true, want: "pb", calls: 2},
		"a provider is ill": {refuse: status(503, "{}"), models: []string{"old", "new"}, pool: true, want: "pb", calls: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := tc.b
			if b == nil {
				b = reply("b")
			}
			bubble(t, map[string]handler{"a": model("new", "a", tc.refuse), "b": b}, func(w *world) {
				t := w.t
				w.plan.models = tc.models
				if tc.only > 0 {
					w.plan.chain = execute.NewChain(w.plan.chain.Links[:tc.only])
				}
				if tc.pool {
					w.plan.chain.Links[0].Channel.Pool = keypool.New([]keypool.Key{{Value: "one"}, {Value: "two"}}, keypool.Cooldowns{Quota: time.Hour, Other: time.Hour, Max: time.Hour}, nil)
				}
				got, out := w.routed(t.Context(), plainBody, tc.change...)
				require.Equal(t, tc.calls, w.called("a"))
				if tc.want == "" {
					require.Equal(t, tc.status, got.head.Status)
					return
				}
				require.Equal(t, http.StatusOK, got.head.Status)
				require.Equal(t, tc.want, gjson.Get(got.text(), "usage.gateway_provider").Str)
				if tc.want == "pa" {
					require.Equal(t, "new", gjson.Get(got.text(), "usage.gateway_model").Str)
					require.Equal(t, "new", out.Usage.UpstreamModel)
				}
				w.idle()
			})
		})
	}
}

// C-26, R-103: a request that is too large for a fast model goes once to the provider for large ones, and costs nobody anything.
func TestTooLargeUnderAuto(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": status(400, overflow), "b": reply("b"), "c": reply("c")}, func(w *world) {
		t := w.t
		w.link("c", large)
		for range 10 {
			got, _ := w.routed(t.Context(), plainBody)
			require.Equal(t, http.StatusOK, got.head.Status)
			require.Equal(t, "pc", got.header("X-Gateway-Provider"))
		}
		require.Equal(t, 10, w.called("a"), "no breaker opens")
		require.Zero(t, w.called("b"))
		got, _ := w.routed(t.Context(), plainBody, named)
		require.Equal(t, http.StatusBadRequest, got.head.Status)
	})
	for name, b := range map[string]handler{"too large for the large one too": status(400, overflow), "refused by nobody else": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstreams := map[string]handler{"a": status(413, overflow), "c": reply("c")}
			if b != nil {
				upstreams["b"] = b
			}
			bubble(t, upstreams, func(w *world) {
				w.link("b", large)
				got, _ := w.routed(w.t.Context(), plainBody)
				require.Contains(w.t, []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, got.head.Status)
				require.Contains(w.t, got.text(), "maximum context length")
				require.Zero(w.t, w.called("c"))
			})
		})
	}
}

// the last resort is called when the hops are used up, and has no breaker.
func TestLastResort(t *testing.T) {
	t.Parallel()
	broken := status(500, "{}")
	bubble(t, map[string]handler{"a": broken, "b": broken, "c": broken, "d": inTurn(broken, broken, broken, broken, reply("d"))}, func(w *world) {
		t := w.t
		w.link("d", lastResort)
		for range 4 {
			got, _ := w.routed(t.Context(), plainBody)
			require.Equal(t, http.StatusServiceUnavailable, got.head.Status)
		}
		got, out := w.routed(t.Context(), plainBody)
		require.Equal(t, http.StatusOK, got.head.Status)
		require.Len(t, out.Usage.Attempts, 1, "the others are open by now")
		require.Equal(t, 3, w.called("c"))

		j := job(plainBody)
		j.Request.Decision, j.Lost = &contract.Decision{Provider: "pa"}, []uint64{1, 2, 3}
		var a answer
		w.exec.Run(t.Context(), j, &a)
		require.Equal(t, http.StatusServiceUnavailable, a.head.Status, "a request whose workers keep dying is not tried for ever")
		require.Equal(t, 5, w.called("d"))
	})
}

// a provider without a usable key costs no connection and no breaker.
func TestNoKeyIsNoCall(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a"), "b": reply("b")}, func(w *world) {
		t := w.t
		for range 10 {
			got, _ := w.routed(t.Context(), plainBody)
			require.Equal(t, "pb", got.header("X-Gateway-Provider"))
			require.Equal(t, "KEY_AVAILABILITY", got.header("X-Routing-Reason"))
		}
		require.Zero(t, w.called("a"))
	}, pooled(0))
}

// a provider's slots are shown as those of an upstream are, although they are counted under another name.
func TestSlotsOfProviderAreLogged(t *testing.T) {
	t.Parallel()
	bubble(t, map[string]handler{"a": reply("a")}, func(w *world) {
		w.routed(w.t.Context(), plainBody)
		require.Contains(w.t, w.log.String(), "accepted model=auto upstream=a provider=pa active[a]=1/2")
		require.Contains(w.t, w.log.String(), "active[a]=0/2")
	}, func(c *execute.Channel) { c.Circuit, c.Limit = "provider:a", 2 })
}

// C-25: a model that takes no images gets a text in their place, and the client is told.
func TestImagesAreLeftOut(t *testing.T) {
	t.Parallel()
	var sent string
	bubble(t, map[string]handler{"a": func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		sent = string(body)
		reply("a")(w, r, n)
	}}, func(w *world) {
		t := w.t
		w.link("a", func(l *execute.Link) { l.NoImages = true })
		got, _ := w.routed(t.Context(), `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"what?"},`+
			`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`)
		require.NotContains(t, sent, "AAAA")
		require.Contains(t, sent, "image omitted")
		require.Contains(t, gjson.Get(got.text(), "usage.gateway_warning").Str, "images")
		require.Contains(t, got.header("X-Gateway-Warning"), "images were left out")
		got, _ = w.routed(t.Context(), plainBody)
		require.False(t, gjson.Get(got.text(), "usage.gateway_warning").Exists())
		require.Empty(t, got.header("X-Gateway-Warning"))
	})
}

// a model that is known not to think is not told how much.
func TestEffortIsLeftOut(t *testing.T) {
	t.Parallel()
	var sent []string
	bubble(t, map[string]handler{"a": func(w http.ResponseWriter, r *http.Request, n int) {
		body, _ := io.ReadAll(r.Body)
		sent = append(sent, string(body))
		reply("a")(w, r, n)
	}}, func(w *world) {
		const body = `{"model":"m","reasoning_effort":"high","messages":[{"role":"user","content":"hi"}]}`
		w.routed(w.t.Context(), body)
		w.link("a", func(l *execute.Link) { l.NoEffort = true })
		w.routed(w.t.Context(), body)
		require.Contains(w.t, sent[0], "reasoning_effort")
		require.NotContains(w.t, sent[1], "reasoning_effort")
	})
}

// a model that the gateway chose and that can't do what the request needs is nobody's last word; that the client named it is.
func TestModelThatIsIncapable(t *testing.T) {
	t.Parallel()
	refuse := status(404, `{"error":{"message":"No endpoints found that support tool use.","code":404}}`)
	tools := func(d *contract.Decision) { d.Needs = contract.FeatureTools }
	bubble(t, map[string]handler{"a": refuse, "b": reply("b")}, func(w *world) {
		t := w.t
		got, _ := w.routed(t.Context(), plainBody, tools)
		require.Equal(t, "pb", got.header("X-Gateway-Provider"))
		require.Equal(t, []string{"pa/real-a 8"}, w.plan.lacks)
		require.Empty(t, w.plan.absent, "it is there")
		got, _ = w.routed(t.Context(), plainBody, tools, named)
		require.Equal(t, http.StatusNotFound, got.head.Status)
		require.Contains(t, got.text(), "support tool use")
		require.Equal(t, 2, w.called("a"))
		require.Equal(t, 1, w.called("b"))
	})
	bubble(t, map[string]handler{"a": refuse, "b": refuse}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody, tools)
		require.Equal(w.t, http.StatusNotFound, got.head.Status, "no waiting helps")
		require.Contains(w.t, got.text(), "support tool use")
	})
	bubble(t, map[string]handler{"a": model("new", "a", refuse)}, func(w *world) {
		w.plan.models = []string{"old", "new"}
		got, _ := w.routed(w.t.Context(), plainBody, tools)
		require.Equal(w.t, "new", gjson.Get(got.text(), "usage.gateway_model").Str)
	})
}

// a call counts for the model that is asked, also when the gateway has changed its mind.
func TestSlotsOfAnotherModel(t *testing.T) {
	t.Parallel()
	var w *world
	slots := map[string]int{}
	count := func(then handler) handler {
		return func(rw http.ResponseWriter, r *http.Request, n int) {
			for _, u := range w.slots.Active() {
				slots[u.ID] += u.Active
			}
			then(rw, r, n)
		}
	}
	bubble(t, map[string]handler{"a": inTurn(count(status(429, `{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}`)), count(reply("a")))}, func(made *world) {
		w = made
		w.plan.models = []string{"old", "new"}
		got, _ := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
		require.Equal(w.t, map[string]int{"pa/old": 1, "pa/new": 1}, slots)
	}, pooled(1))
}

// a request that no channel can take is the client's affair, and no waiting helps; while one that may take it fails or rests, it is not.
func TestRequestThatFitsNowhere(t *testing.T) {
	t.Parallel()
	const audio = `{"model":"auto","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AAAA","format":"wav"}}]}]}`
	for name, tc := range map[string]struct {
		unfit []string
		want  int
	}{
		"nowhere":       {[]string{"a", "b"}, http.StatusBadRequest},
		"somebody else": {[]string{"a"}, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, map[string]handler{"a": reply("a"), "b": status(503, "{}")}, func(w *world) {
				t := w.t
				for _, id := range tc.unfit {
					w.link(id, func(l *execute.Link) { l.Channel.Dialect = dialect.Translated{Translator: anthropic.Translator{}} })
				}
				got, _ := w.routed(t.Context(), audio)
				require.Equal(t, tc.want, got.head.Status)
				require.Equal(t, tc.want == http.StatusBadRequest, gjson.Get(got.text(), "error.param").Str == "messages[0].content[0]")
				w.idle()
			})
		})
	}
}

// C-42: a model that fails twice at a call inside an answer that went well has told the client nothing; another may do better.
func TestModelFailsAtItsOutput(t *testing.T) {
	t.Parallel()
	misfire := status(200, `{"candidates":[{"content":{},"finishReason":"MALFORMED_FUNCTION_CALL"}]}`)
	bubble(t, map[string]handler{"a": misfire, "b": misfire, "c": reply("c")}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody)
		require.Equal(w.t, http.StatusOK, got.head.Status)
	})
	bubble(t, map[string]handler{"a": misfire}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody, named)
		require.Equal(w.t, http.StatusServiceUnavailable, got.head.Status)
		require.Equal(w.t, 2, w.called("a"))
	}, pooled(3))
	bubble(t, map[string]handler{"a": status(400, `{"error":{"message":"no call","code":"tool_use_failed"}}`)}, func(w *world) {
		got, _ := w.routed(w.t.Context(), plainBody, named)
		require.Equal(w.t, http.StatusBadRequest, got.head.Status, "what the provider refuses in words is the client's to read")
	}, pooled(3))
}

// AUTH-03: a provider that sends the key back as the code of its error gives it to nobody: not to the log, the ledger or the
// client.
func TestKeyInErrorCode(t *testing.T) {
	t.Parallel()
	const key = "gsk_0123456789abcdef"
	refusal := `{"error":{"message":"no","code":"` + key + `","type":"` + key + `"}}`
	for _, code := range []int{401, 500} {
		bubble(t, map[string]handler{"a": status(code, refusal), "b": reply("b")}, func(w *world) {
			t := w.t
			w.exec.Secrets = strings.NewReplacer(key, "[redacted]")
			got, out := w.routed(t.Context(), plainBody)
			require.Equal(t, http.StatusOK, got.head.Status)
			require.Contains(t, got.text(), "[redacted]", "the failed attempt is shown")
			require.NotContains(t, got.text()+w.log.String()+out.Usage.Attempts[0].Reason, key[:6])
		})
	}
}
