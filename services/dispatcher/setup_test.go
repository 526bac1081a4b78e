package dispatcher_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/bus"
	"hydrallm/shared/bus/bustest"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/leaktest"
	"hydrallm/shared/testkit/natstest"
	"hydrallm/shared/testkit/startstoptest"
	"hydrallm/shared/topology"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testWait = await.Limit

// pipeline is a NATS server, what comes before and after the dispatchers of a test, and an upstream.
type pipeline struct {
	t        *testing.T
	server   bus.InProcess
	bus      *bus.Bus // of the fake ingress
	upstream *fakellm.Server
	facts    *ledger

	mu       sync.Mutex
	answers  map[string]*answer
	verdicts map[string]contract.FenceDecision // for redeliveries; run where there is none
	fenced   map[string][]uint64               // deliveries that were asked for
}

const ingress = "front"

// setup starts everything but dispatchers.
func setup(t *testing.T) *pipeline {
	t.Helper()
	p := newPipeline(t)
	replies, err := p.bus.SubscribeReplies(ingress, p.deliver)
	require.NoError(t, err)
	bustest.Own(t, p.bus, ingress, bustest.Owner{Decide: p.fence})
	t.Cleanup(func() { require.NoError(t, replies.Stop()) })
	return p
}

// newPipeline is setup without an ingress that answers.
func newPipeline(t *testing.T) *pipeline {
	t.Helper()
	p := &pipeline{
		t: t, server: natstest.Start(t), upstream: fakellm.Start(t),
		answers: map[string]*answer{}, verdicts: map[string]contract.FenceDecision{}, fenced: map[string][]uint64{},
	}
	p.upstream.Handle(fakellm.Talk("hello world"))
	p.bus = p.connect()
	p.facts = collect(t, p.bus)
	return p
}

func (p *pipeline) connect() *bus.Bus {
	p.t.Helper()
	return bustest.Connect(p.t, p.server)
}

// oneUpstream serves the model "m" by the upstream "u". What is given becomes a part of it.
func (p *pipeline) oneUpstream(more string) string {
	return fmt.Sprintf(`
providers: [{id: p, url: "%s/v1", key: key-of-the-provider}]
upstreams: [{id: u, provider: p, model: real, %s}]
models: [{name: m, upstreams: [u]}]
`, p.upstream.URL(), more)
}

// gateway reads a configuration.
func gateway(t *testing.T, text string) *config.Config {
	t.Helper()
	c := configtest.Parse(t, text+"routing: {final_fallback: \"\", aliases: {}}\nweb: {enabled: false}\n")
	return c
}

// start runs a dispatcher until the end of the test, if the test does not stop it before.
func (p *pipeline) start(id, text string) *dispatcher.Dispatcher {
	p.t.Helper()
	d, err := dispatcher.New(dispatcher.Config{ID: id, Gateway: gateway(p.t, text), Version: "1.2.3"}, p.connect(), slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(p.t, err)
	require.NoError(p.t, d.Start(p.t.Context()))
	p.t.Cleanup(func() { startstoptest.Stop(p.t, d) })
	return d
}

const (
	plainBody  = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	streamBody = `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
)

// ask hands a decided request to the dispatchers; change may alter its envelope.
func (p *pipeline) ask(rid, body string, change ...func(*contract.Request)) {
	p.t.Helper()
	now := time.Now()
	req := &contract.Request{
		ID: rid, Ingress: ingress, Slip: contract.Slip{contract.StageEnriched}, Operation: contract.Chat, Surface: contract.SurfaceChat, Model: "m", Stream: strings.Contains(body, `"stream":true`), ReceivedAt: now,
		StartBy:  now.Add(time.Minute),
		Decision: &contract.Decision{Model: "m", Reason: contract.ReasonModelHint, PinProvider: true, Configured: true},
	}
	for _, fn := range change {
		fn(req)
	}
	require.NoError(p.t, p.bus.PublishWork(p.t.Context(), req, []byte(body)))
}

// answer is what came for one request, as the frames of the deliveries say. Its fields are guarded by pipeline.mu.
type answer struct {
	delivery uint64 // of the frames
	seq      uint64
	head     *contract.Head
	body     bytes.Buffer
	end      *contract.End
	faults   []string // what should not have come
}

func (p *pipeline) deliver(rid string, msg []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[rid]
	if a == nil {
		a = &answer{}
		p.answers[rid] = a
	}
	for f, err := range contract.Frames(msg) {
		if err == nil {
			err = a.add(f)
		}
		if err != nil {
			a.faults = append(a.faults, err.Error())
		}
	}
}

// add takes the next frame. Only one delivery may say something.
func (a *answer) add(f contract.Frame) error {
	if a.delivery == 0 {
		a.delivery = f.Delivery
	}
	if f.Delivery != a.delivery || f.Seq != a.seq || a.end != nil {
		return fmt.Errorf("frame %c %d of delivery %d after %d of delivery %d", f.Kind, f.Seq, f.Delivery, a.seq, a.delivery)
	}
	a.seq++
	switch f.Kind {
	case contract.FrameHead:
		a.head = &contract.Head{}
		return json.Unmarshal(f.Payload, a.head)
	case contract.FrameEnd:
		a.end = &contract.End{}
		return json.Unmarshal(f.Payload, a.end)
	default:
		a.body.Write(f.Payload)
		return nil
	}
}

func (p *pipeline) fence(q contract.FenceQuestion) contract.FenceAnswer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fenced[q.RequestID] = append(p.fenced[q.RequestID], q.At.Delivery)
	a := bustest.Owner{}.Fence(q)
	if v, ok := p.verdicts[q.RequestID]; ok {
		a.Decision = v
	}
	return a
}

func (p *pipeline) fencedDeliveries(rid string) []uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fenced[rid]
}

// received is an answer as the client would get it.
type received struct {
	delivery uint64
	status   int // 0 = no head
	header   map[string]string
	body     string
	outcome  string // "" = no end
}

// now gives what has come so far.
func (p *pipeline) now(rid string) received {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.answers[rid]
	if a == nil {
		return received{}
	}
	require.Empty(p.t, a.faults)
	r := received{delivery: a.delivery, body: a.body.String(), header: map[string]string{}}
	if a.head != nil {
		r.status = a.head.Status
		for _, h := range a.head.Header {
			r.header[h[0]] = h[1]
		}
	}
	if a.end != nil {
		r.outcome = a.end.Outcome
	}
	return r
}

// await gives a whole answer.
func (p *pipeline) await(rid string) (r received) {
	p.t.Helper()
	await.True(p.t, func() bool {
		r = p.now(rid)
		return r.outcome != ""
	}, "the end of the answer to", rid)
	return r
}

// ledger is the usage facts in the order of their storage.
type ledger struct {
	t    *testing.T
	mu   sync.Mutex
	of   map[string][]contract.RequestRecord // by request, when it was over
	open map[string][]contract.RequestRecord // the same, before
}

func collect(t *testing.T, b *bus.Bus) *ledger {
	t.Helper()
	l := &ledger{t: t, of: map[string][]contract.RequestRecord{}, open: map[string][]contract.RequestRecord{}}
	c, err := b.ConsumeFacts(t.Context(), bus.FactsConfig{Consumer: topology.SessionWriter, MaxBatch: 64, MaxWait: 10 * time.Millisecond}, l.add)
	require.NoError(t, err)
	t.Cleanup(func() { startstoptest.Stop(t, c) })
	return l
}

func (l *ledger) add(_ context.Context, facts []bus.Fact) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range facts {
		if f.Subject != subject.UsageRecorded {
			continue
		}
		for line := range bytes.Lines(f.Data) {
			var u contract.RequestRecord
			if err := json.Unmarshal(line, &u); err != nil {
				return err
			}
			if u.Over() {
				l.of[u.RequestID] = append(l.of[u.RequestID], u)
			} else {
				l.open[u.RequestID] = append(l.open[u.RequestID], u)
			}
		}
	}
	return nil
}

// await gives the one fact of a request.
func (l *ledger) await(rid string) (u contract.RequestRecord) {
	l.t.Helper()
	await.True(l.t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.of[rid]) == 0 {
			return false
		}
		u = l.of[rid][0]
		return true
	}, "a usage fact of", rid)
	return u
}

// count is the number of facts of a request.
func (l *ledger) count(rid string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of[rid])
}

// handedBack gives the outcomes of the calls that were told to have ended before their request was over.
func (l *ledger) handedBack(rid string) (ends []contract.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range l.open[rid] {
		for _, a := range u.Attempts {
			if a.Outcome.Ended() {
				ends = append(ends, a.Outcome)
			}
		}
	}
	return ends
}

// settled waits until everything that was asked before has been dealt with: a further request is answered and in the ledger.
func (p *pipeline) settled() {
	p.t.Helper()
	rid := fmt.Sprintf("last-%d", time.Now().UnixNano())
	p.ask(rid, plainBody)
	p.await(rid)
	p.facts.await(rid)
}
