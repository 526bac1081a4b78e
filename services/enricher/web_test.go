package enricher

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/output"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

// stage is an enricher that works, with pages of its own and what is behind it.
type stage struct {
	*Enricher

	t       *testing.T
	site    string // address of the pages
	next    chan *bus.Work
	logs    chan contract.Log
	records chan contract.WebRecord
	log     *output.Buffer
}

func startStage(t *testing.T, pages http.Handler) *stage {
	t.Helper()
	site := httptest.NewServer(pages)
	t.Cleanup(site.Close)
	nothing := httptest.NewServer(http.NotFoundHandler()) // in the place of engines and models
	t.Cleanup(nothing.Close)
	s := &stage{t: t, site: site.URL, next: make(chan *bus.Work, 8), logs: make(chan contract.Log, 8), records: make(chan contract.WebRecord, 8), log: &output.Buffer{}}
	b := bustest.Start(t)
	bustest.Own(t, b, "i1", bustest.Owner{})
	web := config.Web{
		Enabled: true, Browser: "never", MaxChars: 6000, CacheTTL: time.Hour, Deadline: time.Minute, AllowHosts: []string{"127.0.0.1"}, Search: []string{"searxng"},
		SearxNGURL: nothing.URL, Intent: config.Intent{EmbeddingURL: nothing.URL},
	}
	var err error
	s.Enricher, err = New(Config{ID: "e1", Web: web}, b, slog.New(slog.NewTextHandler(s.log, nil)), prometheus.NewRegistry())
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { startstoptest.Stop(t, s) })
	c, err := b.ConsumeWork(t.Context(), bus.WorkConfig{Consumer: topology.Dispatcher, MaxInFlight: 8}, func(_ context.Context, w *bus.Work) {
		w.Done()
		s.next <- w
	})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	facts, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 16, MaxWait: time.Millisecond}, func(_ context.Context, batch []bus.Fact) error {
		for _, f := range batch {
			if f.Subject == subject.WebRecorded {
				var r contract.WebRecord
				if err := json.Unmarshal(f.Data, &r); err != nil {
					return err
				}
				s.records <- r
				continue
			}
			var log contract.Log
			if err := json.Unmarshal(f.Data, &log); err != nil {
				return err
			}
			s.logs <- log
		}
		return nil
	})
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, facts) })
	return s
}

// send gives what reaches the dispatcher of a request.
func (s *stage) send(req *contract.Request, body string) *bus.Work {
	s.t.Helper()
	req.Ingress, req.StartBy = "i1", time.Now().Add(time.Hour)
	req.Slip = contract.Slip{contract.StageAnalyzed, contract.StageEnriched}
	req.Decision = &contract.Decision{Model: "m", Reason: contract.ReasonTokenCount, Provider: "groq", Tokens: req.Traits.Tokens}
	require.NoError(s.t, s.bus.PublishWork(s.t.Context(), req, []byte(body)))
	return await.Value(s.t, s.next)
}

func article(text string) string {
	return `<html><head><title>T</title></head><body><article><h1>Heading</h1><p>` + text + ` that is long enough to be an article and no boilerplate.</p></article></body></html>`
}

// text of a page is put before the question, told of once in the log and once as an event, and changes no decision.
func TestTextFromTheWeb(t *testing.T) {
	t.Parallel()
	s := startStage(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(article("text-of-the-page")))
	}))
	for i, session := range []string{"", "", "", "", "", "s1"} { // lines that are alike are written nevertheless
		req := &contract.Request{ID: fmt.Sprint("r", i), Surface: contract.SurfaceChat, SessionID: session, Traits: contract.Traits{Tokens: 5}}
		w := s.send(req, `{"n":1.0,"messages":[{"role":"user","content":"what does `+s.site+`/p say"}]}`)
		require.Equal(t, req.Decision, w.Request.Decision)
		require.Equal(t, req.Traits, w.Request.Traits)
		require.Equal(t, int64(2), gjson.GetBytes(w.Body, "messages.#").Int())
		require.Equal(t, "web_context", gjson.GetBytes(w.Body, "messages.0.name").Str)
		text := gjson.GetBytes(w.Body, "messages.0.content").Str
		require.Contains(t, text, "text-of-the-page")
		require.Contains(t, text, s.site+"/p")
		event := await.Value(t, s.logs)
		require.Equal(t, [...]string{"WEB_ENRICH", "INFO", req.ID}, [...]string{event.Category, event.Level, event.RequestID})
		require.Equal(t, int64(len([]rune(text))), gjson.GetBytes(event.Metadata, "length").Int())
		require.True(t, gjson.GetBytes(event.Metadata, "latency_ms").Exists())
		record := await.Value(t, s.records)
		require.Equal(t, [...]any{req.ID, session, uint64(1)}, [...]any{record.RequestID, record.SessionID, record.Delivery})
		status := contract.VisitCacheHit
		if i == 0 {
			status = contract.VisitSuccess
		}
		require.Equal(t, [...]any{contract.VisitFetch, s.site + "/p", status}, [...]any{record.Visits[0].Kind, record.Visits[0].URL, record.Visits[0].Status})
		require.Contains(t, record.Visits[0].Content, "text-of-the-page")
		require.Equal(t, string(status), gjson.GetBytes(w.Request.WebParts, "0.data.status").Str)
	}
	await.True(t, func() bool { return testutil.ToFloat64(s.metrics.requests.WithLabelValues(endInjected)) == 6 })
	require.Equal(t, 6, s.log.Count("Web context injected: "))
	require.Equal(t, 5, s.log.Count("chars into request.messages[-2] (session=None)"))
	require.Equal(t, 1, s.log.Count("chars into request.messages[-2] (session=s1)"))
	require.Greater(t, testutil.ToFloat64(s.metrics.characters), 600.0)
	for status, times := range map[contract.VisitStatus]uint64{contract.VisitSuccess: 1, contract.VisitCacheHit: 5} {
		var m dto.Metric
		require.NoError(t, s.metrics.visits.WithLabelValues(string(contract.VisitFetch), string(status)).(prometheus.Histogram).Write(&m))
		require.Equal(t, times, m.GetHistogram().GetSampleCount(), status)
	}
}

// what can't be read leaves a request as it was, without a line and an event.
func TestNothingToInject(t *testing.T) {
	t.Parallel()
	s := startStage(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/empty":
		case "/away":
			http.Redirect(w, r, "http://169.254.169.254/latest/", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}))
	for i, web := range []contract.Web{{Fetch: s.site + "/none"}, {Fetch: s.site + "/empty"}, {Fetch: s.site + "/away"}, {Fetch: "http://10.0.0.1/"}, {Fetch: "file:///etc/hostname"}, {Search: true}} {
		const body = `{"messages":[{"role":"user","content":"hello there"}],"n":1.0}`
		w := s.send(&contract.Request{ID: fmt.Sprint("r", i), Surface: contract.SurfaceChat, Web: web}, body)
		require.Equal(t, body, string(w.Body))
		for _, v := range await.Value(t, s.records).Visits {
			require.Equal(t, contract.VisitFailed, v.Status)
			require.Empty(t, v.Summary+v.Content)
		}
	}
	await.True(t, func() bool { return testutil.ToFloat64(s.metrics.requests.WithLabelValues(endForwarded)) == 6 })
	require.Zero(t, s.log.Count("Web context injected"))
	require.Empty(t, s.logs)
}

// A request that was lost with two workers goes on as it is: its pages may be why.
func TestRequestThatKillsWorkers(t *testing.T) {
	t.Parallel()
	s := startStage(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the page is read again") }))
	const body = `{"messages":[{"role":"user","content":"hello there"}]}`
	r := s.Running()
	w := &bus.Work{Request: &contract.Request{ID: "r", Web: contract.Web{Fetch: s.site}}, Body: []byte(body), Lost: []uint64{1, 2}}
	require.Empty(t, r.added(t.Context(), w).Body)
}
