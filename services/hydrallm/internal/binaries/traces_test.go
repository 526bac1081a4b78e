package binaries

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// spans are what a collector of traces was sent, by trace.
type spans struct {
	mu      sync.Mutex
	byTrace map[string][]*traces.Span
}

// collect starts a collector and gives its address.
func collect(t *testing.T) (*spans, string) {
	t.Helper()
	s := &spans{byTrace: map[string][]*traces.Span{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server.URL
}

// of gives the spans of a trace, as a collector knows them now.
func (s *spans) of(id string) []*traces.Span {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.byTrace[decoded(id)])
}

// paths gives the names from the first span that the gateway has made in a trace to each other, and how many there are of each path. A span whose parent is not
// there begins with "?".
func (s *spans) paths(id string) map[string]int {
	all := s.of(id)
	byID := map[string]*traces.Span{}
	for _, span := range all {
		byID[string(span.GetSpanId())] = span
	}
	found := map[string]int{}
	for _, span := range all {
		names := []string{span.GetName()}
		for above := span; hex.EncodeToString(above.GetParentSpanId()) != clientSpan; {
			if above = byID[string(above.GetParentSpanId())]; above == nil {
				names = append(names, "?")
				break
			}
			names = append(names, above.GetName())
		}
		slices.Reverse(names)
		found[strings.Join(names, " > ")]++
	}
	return found
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var sent collector.ExportTraceServiceRequest
	if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &sent) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range sent.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.byTrace[string(span.GetTraceId())] = append(s.byTrace[string(span.GetTraceId())], span)
			}
		}
	}
}

// what happens to a request in all services is one trace, which the client may have begun; the provider is not told of it.
func TestTraces(t *testing.T) {
	t.Parallel()
	binary := processtest.AllInOne(t)
	got, collector := collect(t)
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hi"))
	addr := freeport.Addr(t)
	env := alone(t, t.TempDir(), addr, upstream.URL(), "telemetry: {otlp_endpoint: \""+collector+"\"}")
	w := processtest.Run(t, binary, env)
	w.AwaitReady(t, addr)
	const front = "POST /v1/chat/completions"
	for model, want := range map[string][]string{
		"m":      {front, front + " > dispatcher process", front + " > dispatcher process > call u"},
		"p/real": {front, front + " > analyzer process", front + " > analyzer process > dispatcher process", front + " > analyzer process > dispatcher process > call p"},
	} {
		id := traceID[:31] + string('0'+rune(len(model)))
		require.Equal(t, http.StatusOK, ask(t, addr, id, `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`), model)
		want = append(want, want[len(want)-2]+" > store usage")
		await.True(t, func() bool {
			found := got.paths(id)
			return !slices.ContainsFunc(want, func(path string) bool { return found[path] == 0 })
		}, model)
		require.Len(t, got.paths(id), len(want), model)
	}
	for _, r := range upstream.Requests() {
		require.Empty(t, r.Header.Get("Traceparent"))
	}
	w.End(t, syscall.SIGTERM)
	got.mu.Lock()
	defer got.mu.Unlock()
	batches := 0
	for _, all := range got.byTrace {
		for _, span := range all {
			if span.GetName() == "session-writer process" && len(span.GetParentSpanId()) == 0 && len(span.GetLinks()) > 0 {
				batches++
			}
		}
	}
	require.Positive(t, batches, "what is stored together is a trace of its own, which leads to the requests")
}

// from the HTTP request over all five services to the calls of upstreams, the page that is read and what the database is told, each span leads to that of
// the HTTP request. Nothing of a page's address is in them but its host.
func TestTraceOverAllServices(t *testing.T) {
	t.Parallel()
	got, collector := collect(t)
	upstream := fakellm.Start(t, fakellm.Error(http.StatusUnauthorized, "not this key"))
	upstream.Handle(fakellm.Talk("hi"))
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "The harbour of the town has three piers and a lighthouse.")
	}))
	t.Cleanup(site.Close)
	dir, addr := t.TempDir(), freeport.Addr(t)
	path := filepath.Join(dir, "config.yaml")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
server: {host: 127.0.0.1, port: %s}
providers: [{id: p, url: "%s/v1", keys: [one-of-the-keys, other-of-the-keys]}]
routing: {final_fallback: "", aliases: {}}
web: {browser: never, allow_hosts: [127.0.0.1]}
sessions: {database: "sqlite:%s/hydrallm.db"}
nats: {store_dir: "%s/nats"}
telemetry: {otlp_endpoint: "%s"}
`, portOf(t, addr), upstream.URL(), dir, dir, collector), 0o600))
	w := processtest.Run(t, processtest.AllInOne(t), []string{"CONFIG_PATH=" + path})
	w.AwaitReady(t, addr)
	status := ask(t, addr, traceID, `{"model":"p/real","session_id":"s1","web_fetch":"`+site.URL+`/private-path?q=private-words","messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, http.StatusOK, status)
	const (
		front    = "POST /v1/chat/completions"
		session  = front + " > session process"
		analyzer = session + " > analyzer process"
		enricher = analyzer + " > enricher process"
		dispatch = enricher + " > dispatcher process"
	)
	want := map[string]int{
		front: 1, session: 1, analyzer: 1, enricher: 1, dispatch: 1,
		enricher + " > fetch page": 1, enricher + " > store web": 1,
		dispatch + " > call p": 2, dispatch + " > call p > store turn": 1, dispatch + " > store usage": 1,
	}
	await.True(t, func() bool {
		found := got.paths(traceID)
		for path, n := range want {
			if found[path] < n {
				return false
			}
		}
		return true
	}, "spans")
	for path := range got.paths(traceID) {
		require.True(t, strings.HasPrefix(path, front), path)
	}
	for _, span := range got.of(traceID) {
		require.NotContains(t, span.String(), "private")
	}
	w.End(t, syscall.SIGTERM)
}

// What a client has begun: a trace, and its span in it.
const (
	traceID    = "0af7651916cd43dd8448eb211c80319c"
	clientSpan = "b7ad6b7169203331"
)

// ask sends one request within a trace.
func ask(t *testing.T, addr, trace, body string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Traceparent", "00-"+trace+"-"+clientSpan+"-01")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// decoded is a trace id as it is sent.
func decoded(id string) string {
	b, err := hex.DecodeString(id)
	if err != nil {
		panic(err)
	}
	return string(b)
}
