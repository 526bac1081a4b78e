package ingress_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/topology"
)

const (
	session  = contract.StageSession
	received = contract.StageReceived
	analyzed = contract.StageAnalyzed
	enriched = contract.StageEnriched
)

// envelopes answers every request where it comes first and gives what the ingress wrote about it.
func (g *gateway) envelopes() <-chan *contract.Request {
	g.t.Helper()
	got := make(chan *contract.Request, 8)
	for _, consumer := range []string{topology.Session, topology.Analyzer, topology.Enricher, topology.Dispatcher} {
		g.answer(consumer, func(ctx context.Context, r *reply) {
			got <- r.work.Request
			echo(ctx, r)
		})
	}
	return got
}

// the slip holds the stages that have something to do, and that there are.
func TestSlips(t *testing.T) {
	t.Parallel()
	const user = `"messages":[{"role":"user","content":"hi"}]`
	tests := map[string]struct {
		body   string // a chat request, or embeddings when it has an input
		today  contract.Slip
		slip   contract.Slip // when every stage is there
		routed bool
	}{
		"configured":                            {`{"model":"m",` + user + `}`, contract.Slip{enriched}, contract.Slip{enriched}, false},
		"configured, without web":               {`{"model":"m","auto_web_fetch":false,"has_search":false,"web_fetch":null,` + user + `}`, contract.Slip{enriched}, contract.Slip{enriched}, false},
		"configured, search":                    {`{"model":"m","has_search":true,` + user + `}`, contract.Slip{enriched}, contract.Slip{analyzed, enriched}, false},
		"configured, fetch":                     {`{"model":"m","web_fetch":"https://x",` + user + `}`, contract.Slip{enriched}, contract.Slip{analyzed, enriched}, false},
		"configured, automatic fetch":           {`{"model":"m","auto_web_fetch":true,` + user + `}`, contract.Slip{enriched}, contract.Slip{analyzed, enriched}, false},
		"configured, a session":                 {`{"model":"m","session_id":"s",` + user + `}`, contract.Slip{enriched}, contract.Slip{session, enriched}, false},
		"configured, a session and the web":     {`{"model":"m","session_id":"s","has_search":true,` + user + `}`, contract.Slip{enriched}, contract.Slip{session, analyzed, enriched}, false},
		"routed":                                {`{"model":"auto",` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, analyzed, enriched}, true},
		"routed, no model":                      {`{` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, analyzed, enriched}, true},
		"routed, a session":                     {`{"model":"M","session_id":"s",` + user + `}`, contract.Slip{received, enriched}, contract.Slip{session, received, analyzed, enriched}, true},
		"routed, without web":                   {`{"auto_web_fetch":false,` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, enriched}, true},
		"routed, without web but for a search":  {`{"auto_web_fetch":false,"has_search":true,` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, analyzed, enriched}, true},
		"routed, an agent with tools":           {`{"tools":[{"type":"function"}],` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, enriched}, true},
		"routed, an agent with tools, a search": {`{"has_search":true,"tools":[{"type":"function"}],` + user + `}`, contract.Slip{received, enriched}, contract.Slip{received, analyzed, enriched}, true},
		"routed, an agent that goes on":         {`{"messages":[{"role":"user","content":"hi"},{"role":"tool","content":"x"}]}`, contract.Slip{received, enriched}, contract.Slip{received, enriched}, true},
		"routed, an image without words":        {`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, contract.Slip{received, enriched}, contract.Slip{received, enriched}, true},
		"embeddings, configured":                {`{"model":"m","input":"hi","has_search":true,"session_id":"s"}`, contract.Slip{enriched}, contract.Slip{enriched}, false},
		"embeddings, routed":                    {`{"model":"e","input":"hi","has_search":true}`, contract.Slip{received, enriched}, contract.Slip{received, enriched}, true},
	}
	models := []ingress.Model{{ID: "m"}}
	all := setup(t, func(c *ingress.Config) {
		c.Models, c.AutoWeb, c.Stages = models, true, []contract.Stage{session, analyzed}
	})
	today := setup(t, func(c *ingress.Config) { c.Models = models })
	fromAll, fromToday := all.envelopes(), today.envelopes()
	for name, tt := range tests {
		path := "/v1/chat/completions"
		if strings.Contains(tt.body, `"input"`) {
			path = "/v1/embeddings"
		}
		for _, g := range []struct {
			*gateway
			from <-chan *contract.Request
			slip contract.Slip
		}{{all, fromAll, tt.slip}, {today, fromToday, tt.today}} {
			require.Equal(t, http.StatusOK, g.do(http.MethodPost, path, strings.NewReader(tt.body)).StatusCode, name)
			r := await.Value(t, g.from)
			require.Equal(t, g.slip, r.Slip, name)
			require.Equal(t, tt.routed, r.Decision == nil, name)
			if !tt.routed {
				require.Equal(t, contract.Decision{
					Model: "m", Reason: contract.ReasonModelHint, PinProvider: true, PinModel: true, Configured: true,
					Search: r.Web.Search, Tokens: r.Traits.Tokens,
				}, *r.Decision, name)
			}
			require.Equal(t, testWait, r.QueueTimeout)
			require.WithinDuration(t, r.ReceivedAt.Add(testWait), r.StartBy, 2*time.Millisecond)
		}
	}
}

// the enricher is on the slip of what may need the web.
func TestWhatMayNeedTheWeb(t *testing.T) {
	t.Parallel()
	const (
		words   = `"messages":[{"role":"user","content":"hi"}]`
		address = `"messages":[{"role":"user","content":"see http:\/\/x.example/a"}]`
		earlier = `"messages":[{"role":"user","content":"see http://x.example/a"},{"role":"assistant","content":"b"},{"role":"user","content":"hi"}]`
		result  = `"messages":[{"role":"user","content":"a"},{"role":"tool","content":"see http://x.example"}]`
		tools   = `"tools":[{"type":"function","function":{"name":"f"}}],`
		search  = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search_preview"}],`
	)
	tests := map[string]struct {
		body           string
		auto, explicit bool // with web.enabled, and without
	}{
		"words, pipeline":                     {`{"model":"p",` + words + `}`, true, false},
		"words, transparent":                  {`{"model":"m",` + words + `}`, false, false},
		"an address, transparent":             {`{"model":"m",` + address + `}`, false, false},
		"words, routed":                       {`{` + words + `}`, true, false},
		"words, pipeline, asked for":          {`{"model":"p","auto_web_fetch":true,` + words + `}`, true, true},
		"words, pipeline, not wanted":         {`{"model":"p","auto_web_fetch":false,` + words + `}`, false, false},
		"an agent":                            {`{"model":"p",` + tools + words + `}`, false, false},
		"an agent that names an address":      {`{"model":"p",` + tools + address + `}`, true, false},
		"an agent that has named one":         {`{"model":"p",` + tools + earlier + `}`, false, false},
		"an agent that offers a search":       {`{"model":"p",` + search + words + `}`, true, false},
		"an agent that demands a search":      {`{"model":"m","tool_choice":{"type":"web_search_preview"},` + search + words + `}`, true, false},
		"a search by options":                 {`{"model":"p","web_search_options":{},` + tools + words + `}`, true, false},
		"a result of a tool":                  {`{"model":"p",` + result + `}`, false, false},
		"a result of a tool, without tools":   {`{` + result + `}`, false, false},
		"a search in any case, no automatism": {`{"model":"m","has_search":true,"auto_web_fetch":false,` + words + `}`, true, true},
	}
	gateway := func(auto bool) func(*ingress.Config) {
		return func(c *ingress.Config) {
			c.Models, c.Pipelines, c.AutoWeb, c.Stages = []ingress.Model{{ID: "m"}, {ID: "p"}}, []string{"p"}, auto, []contract.Stage{session, analyzed}
		}
	}
	auto, explicit := setup(t, gateway(true)), setup(t, gateway(false))
	fromAuto, fromExplicit := auto.envelopes(), explicit.envelopes()
	for name, tt := range tests {
		require.Equal(t, http.StatusOK, auto.chat(tt.body).StatusCode, name)
		require.Equal(t, tt.auto, await.Value(t, fromAuto).Slip.Has(analyzed), name)
		require.Equal(t, http.StatusOK, explicit.chat(tt.body).StatusCode, name)
		require.Equal(t, tt.explicit, await.Value(t, fromExplicit).Slip.Has(analyzed), name)
	}
}

// what stages want to know of a body is read once.
func TestWhatStagesWantToKnow(t *testing.T) {
	t.Parallel()
	g := setup(t, nil)
	got := g.envelopes()
	body := `{"model":"auto","has_search":true,"auto_web_fetch":false,"web_fetch":"https://x/\u00e9","session_id":"s1","fork_from":"m9","compress_context":true,
		"tools":[{}],"max_tokens":10,"messages":[{"role":"user","content":[{"type":"text","text":"12345678"},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`
	require.Equal(t, http.StatusOK, g.chat(body).StatusCode)
	r := await.Value(t, got)
	require.Equal(t, contract.Traits{Tokens: 2 + 256 + 10, Images: true, Tools: true, UserText: true}, r.Traits)
	require.Equal(t, contract.Web{Search: true, Fetch: "https://x/é", Auto: new(false)}, r.Web)
	require.Equal(t, [...]string{"s1", "m9"}, [...]string{r.SessionID, r.ForkFrom})
	require.Equal(t, new(true), r.CompressContext)
	require.Equal(t, contract.PrincipalAnonymous, r.Principal)
	for field, value := range map[string]string{
		"session_id": `5`, "has_search": `"yes"`, "auto_web_fetch": `"no"`, "web_fetch": `["https://x"]`, "compress_context": `1`, "fork_from": `{}`,
	} {
		a := g.chat(`{"model":"m","` + field + `":` + value + `,"messages":[{"role":"user","content":"hi"}]}`)
		requireError(t, a, http.StatusBadRequest)
		require.Contains(t, a.body, `'`+field+`' must be`)
	}
	for field, size := range map[string]int{"fork_from": 513, "web_fetch": 4097} {
		a := g.chat(`{"model":"m","session_id":"s","` + field + `":"` + strings.Repeat("x", size) + `","messages":[{"role":"user","content":"hi"}]}`)
		requireError(t, a, http.StatusBadRequest)
		require.Contains(t, a.body, `'`+field+`' is too long`)
	}
	// The longest that all of it may be, in characters that need the most room.
	long := func(n int) string { return strings.Repeat(`\u0001`, n) }
	body = `{"model":"` + long(512) + `","session_id":"` + strings.Repeat("x", 128) + `","fork_from":"` + long(512) + `","web_fetch":"` + long(4096) + `","messages":[{"role":"user","content":"hi"}]}`
	require.Equal(t, http.StatusOK, g.chat(body).StatusCode)
	require.Len(t, await.Value(t, got).Web.Fetch, 4096)
}

// the id of a session comes in the body or in a header and may hold nothing that means something to whoever carries it. Every answer tells it.
func TestSessionIDs(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Stages = []contract.Stage{session} })
	got := g.envelopes()
	const user = `"messages":[{"role":"user","content":"hi"}]`
	ask := func(body, header string) answer {
		if header == "" {
			return g.chat(body)
		}
		return g.chat(body, "X-Session-Id", header)
	}
	for _, id := range []string{"s", "A-1_b.c:d", "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV", strings.Repeat("x", 128)} {
		for name, a := range map[string]answer{
			"body": ask(`{"session_id":"`+id+`",`+user+`}`, ""), "header": ask(`{`+user+`}`, id), "both": ask(`{"session_id":"`+id+`",`+user+`}`, id),
		} {
			require.Equal(t, http.StatusOK, a.StatusCode, name)
			require.Equal(t, id, a.Header.Get("X-Session-Id"), name)
			r := await.Value(t, got)
			require.Equal(t, id, r.SessionID, name)
			require.Equal(t, session, r.Slip[0], name)
		}
	}
	for _, id := range []string{
		"-a", ".", "..", "../../etc", "a/b", "a b", "a ", "한국", "a*", ">", "%", "%2F", "x' OR '1'='1", `a\u0000`, `a\r\nX-Evil: 1`, `\u0001`, strings.Repeat("x", 129),
		strings.Repeat("a", 10240),
	} {
		a := ask(`{"session_id":"`+id+`",`+user+`}`, "")
		requireError(t, a, http.StatusBadRequest)
		require.Empty(t, a.Header.Get("X-Session-Id"), id)
		require.Empty(t, a.Header.Get("X-Evil"), id)
	}
	for _, tt := range [][2]string{{`{"session_id":"a",` + user + `}`, "b"}, {`{` + user + `}`, "a/b"}, {`{"fork_from":"m",` + user + `}`, ""}} {
		requireError(t, ask(tt[0], tt[1]), http.StatusBadRequest)
	}
	for _, body := range []string{`{` + user + `}`, `{"session_id":null,` + user + `}`, `{"session_id":"",` + user + `}`} {
		a := ask(body, "")
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Empty(t, a.Header.Get("X-Session-Id"))
		require.NotEqual(t, session, await.Value(t, got).Slip[0])
	}
}

//
func TestPrincipals(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.ClientKeys, c.AdminKey = []string{"one", "two"}, "secret" })
	got := g.envelopes()
	for _, key := range []string{"one", "two"} {
		require.Equal(t, http.StatusOK, g.chat(chatBody, "Authorization", "Bearer "+key).StatusCode)
		sum := sha256.Sum256([]byte(key))
		require.Equal(t, fmt.Sprintf("k:%x", sum[:8]), await.Value(t, got).Principal)
	}
	require.Equal(t, http.StatusOK, g.chat(chatBody, "X-Api-Key", "secret").StatusCode)
	require.Equal(t, contract.PrincipalAdmin, await.Value(t, got).Principal)
	requireError(t, g.chat(chatBody, "Authorization", "Bearer three"), http.StatusUnauthorized)
	requireError(t, g.chat(chatBody, "X-Admin-Key", "secret"), http.StatusUnauthorized)
	require.Equal(t, http.StatusOK, g.do(http.MethodGet, "/v1/models", nil, "Authorization", "Bearer secret").StatusCode)
	require.NotContains(t, g.log.String(), "secret")
}

// the decision log has what the ingress decides. A request that the pipeline did not take is not in it.
func TestDecisionsAreRecorded(t *testing.T) {
	t.Parallel()
	g := setup(t, func(c *ingress.Config) { c.Models = []ingress.Model{{ID: "m"}} })
	envelopes := g.envelopes()
	require.Equal(t, http.StatusOK, g.chat(chatBody).StatusCode)
	rid := await.Value(t, envelopes).ID
	require.Equal(t, http.StatusOK, g.chat(strings.Replace(chatBody, `"m"`, `"auto"`, 1)).StatusCode)
	await.Value(t, envelopes)
	facts := make(chan bus.Fact, 8)
	c, err := g.worker.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 8, MaxWait: time.Millisecond},
		func(_ context.Context, list []bus.Fact) error {
			for _, f := range list {
				facts <- f
			}
			return nil
		})
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Stop(context.Background())) }()
	f := await.Value(t, facts)
	require.Equal(t, subject.Log("ROUTING"), f.Subject)
	lines := bytes.Split(bytes.TrimSpace(f.Data), []byte("\n"))
	require.Len(t, lines, 1)
	var l contract.Log
	require.NoError(t, json.Unmarshal(lines[0], &l))
	require.Equal(t, rid, l.RequestID)
	require.Equal(t, "m goes to the upstreams of m: USER_HINT, about 1 tokens", l.Message)
	require.Empty(t, facts)
}

// a stage that nobody serves is a 503, the first one as well as a later one.
func TestStageThatNobodyServes(t *testing.T) {
	t.Parallel()
	for name, model := range map[string]string{"the first": "m", "a later one": "auto"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := setup(t, func(c *ingress.Config) {
				c.Models, c.Stages, c.QueueTimeout = []ingress.Model{{ID: "m"}}, []contract.Stage{analyzed}, 200*time.Millisecond
			})
			g.consume(bus.WorkConfig{Consumer: topology.Analyzer}, func(ctx context.Context, w *bus.Work) {
				w.Request.Decision = &contract.Decision{}
				if err := w.Forward(ctx, nil); err != nil {
					t.Error(err)
				}
			})
			g.answer(topology.Dispatcher, echo)
			a := g.chat(`{"model":"` + model + `","has_search":true,"messages":[{"role":"user","content":"hi"}]}`)
			_, code := requireError(t, a, http.StatusServiceUnavailable)
			require.Equal(t, "queue_timeout", code)
			require.NotEmpty(t, a.Header.Get("Retry-After"))
			refused := make(chan string, 1)
			g.consume(bus.WorkConfig{Consumer: topology.Enricher, Refused: func(_ context.Context, w *bus.Work) { refused <- w.Request.Model }},
				func(context.Context, *bus.Work) { t.Error("a worker gets it although it is too late") })
			require.Equal(t, model, await.Value(t, refused))
		})
	}
}
