package binaries

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// spans are what a collector of traces was sent: names by trace.
type spans struct {
	mu      sync.Mutex
	byTrace map[string][]string
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
				s.byTrace[string(span.GetTraceId())] = append(s.byTrace[string(span.GetTraceId())], span.GetName())
			}
		}
	}
}

// what happens to a request in all services is one trace, which the client may have begun; the provider is not told of it.
func TestTraces(t *testing.T) {
	t.Parallel()
	binary := allInOne(t)
	got := &spans{byTrace: map[string][]string{}}
	server := httptest.NewServer(got)
	t.Cleanup(server.Close)
	upstream := fakellm.Start(t)
	upstream.Handle(fakellm.Talk("hi"))
	addr := freeport.Addr(t)
	env := alone(t, t.TempDir(), addr, upstream.URL(), "telemetry: {otlp_endpoint: \""+server.URL+"\"}")
	w := run(t, binary, env)
	w.awaitReady(t, addr)
	const trace = "0af7651916cd43dd8448eb211c80319c"
	for model, want := range map[string][]string{
		"m":      {"POST /v1/chat/completions", "dispatcher process", "call u"},
		"p/real": {"POST /v1/chat/completions", "analyzer process", "dispatcher process", "call p"},
	} {
		id := trace[:31] + string('0'+rune(len(model)))
		status := ask(t, addr, model, "00-"+id+"-b7ad6b7169203331-01")
		require.Equal(t, http.StatusOK, status, model)
		await.True(t, func() bool {
			got.mu.Lock()
			defer got.mu.Unlock()
			return len(got.byTrace[decoded(id)]) >= len(want)
		}, model)
		got.mu.Lock()
		require.ElementsMatch(t, want, got.byTrace[decoded(id)], model)
		got.mu.Unlock()
	}
	for _, r := range upstream.Requests() {
		require.Empty(t, r.Header.Get("Traceparent"))
	}
	w.end(t, syscall.SIGTERM)
	all := map[string]bool{}
	for _, names := range got.byTrace {
		for _, name := range names {
			all[name] = true
		}
	}
	require.True(t, all["session-writer process"], "what is stored is a trace of its own")
}

// ask sends one request within a trace.
func ask(t *testing.T, addr, model, traceparent string) (status int) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/v1/chat/completions",
		strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	req.Header.Set("Traceparent", traceparent)
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
