package dispatcher

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/discover"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
	"hydrallm/shared/modelindex"
)

// Questions says which models Examine asks for an answer, which costs some tokens each.
type Questions int

// Whom Examine asks.
const (
	NoQuestions Questions = iota
	OneQuestion           // one model of the provider, and those that its list does not have
	AllModels             // each configured model of the provider
)

// Examination says how to look at providers.
type Examination struct {
	Version     string // of the program that looks, for the providers
	Questions   Questions
	Limit       time.Duration // of each call but answers, and of each step to a connection
	AnswerLimit time.Duration // of each answer, to its end
}

// Class says what the result of a call means: one of the words of the label "class" of hydrallm_upstream_attempts_total.
type Class string

// Classes of which callers know something.
const (
	ClassSuccess   = Class(classify.Success)
	ClassUpstream  = Class(classify.Upstream)
	ClassRate      = Class(classify.Rate)
	ClassQuota     = Class(classify.Quota)
	ClassPayment   = Class(classify.Payment)
	ClassAuth      = Class(classify.Auth)
	ClassForbidden = Class(classify.Forbidden)
	ClassModel     = Class(classify.Model)
	ClassCancelled = Class(classify.Cancelled)
)

// Outcome is what became of a call. It holds nothing that the provider wrote but codes that look like one.
type Outcome struct {
	Class  Class
	Reason string        // such as "http 401 invalid_api_key"; "" for a success
	Status int           // of HTTP, of the last answer; 0 = there was none
	HTML   bool          // that answer was a page for people
	Wait   time.Duration // how long the provider wants to be left alone; 0 = it does not say
	Took   time.Duration
}

// Leg is a part of making a connection: "dns", "tcp" or "tls".
type Leg struct {
	Name string
	Took time.Duration
	Err  error
}

// ExaminedKey is what a provider makes of a key.
type ExaminedKey struct {
	Index   int    // in the configuration
	Mask    string // shows which one it is, see config.Mask; "" for the call without a key
	Outcome Outcome
}

// ExaminedAnswer is a streamed answer of a model.
type ExaminedAnswer struct {
	Model     string
	Outcome   Outcome
	Whole     bool          // it came in one piece, though a stream was asked for
	Silent    bool          // it ended as it should, and had no text
	FirstByte time.Duration // until the first piece
}

// Examined is what was found out about a provider.
type Examined struct {
	Provider string
	Legs     []Leg // as far as it came
	Keys     []ExaminedKey
	Listed   bool     // there is a list of models
	Models   int      // in it
	Missing  []string // models of the configuration that it does not have
	Answers  []ExaminedAnswer
	// Clocks is by how much this machine's clock is ahead of the provider's, of each answer that says what time it is there. Dates have whole seconds.
	Clocks []time.Duration
}

// keysAtOnce bounds how many keys of a provider are tried at the same time.
const keysAtOnce = 4

// Examine looks at a provider from where it runs, as the dispatcher would call it: whether there is a connection, what becomes of each of its
// keys, whether its list has the models of the configuration, and, if that is wished, how it answers. It changes nothing, and takes as long as its
// calls need. No program of a local agent is run, and agents are asked nothing, since they might do what they are told.
func Examine(ctx context.Context, cfg *config.Config, p config.Provider, how Examination) (Examined, error) {
	client := &clockwatch{client: upstream.New(upstream.Config{UserAgent: "HydraLLM/" + how.Version})}
	defer client.client.Close()
	all, err := newDialects([]config.Provider{p}, client, nil)
	if err != nil {
		return Examined{}, err
	}
	defer all.close()
	e := &examiner{cfg: cfg, provider: p, how: how, client: client, dialects: all, found: Examined{Provider: p.ID}}
	e.found.Legs = e.connect(ctx)
	if last := e.found.Legs[len(e.found.Legs)-1]; last.Err != nil {
		return e.found, nil
	}
	e.tryKeys(ctx)
	e.compareModels()
	e.askModels(ctx)
	e.found.Clocks = client.ahead
	return e.found, nil
}

// examiner looks at one provider.
type examiner struct {
	cfg      *config.Config
	provider config.Provider
	how      Examination
	client   *clockwatch
	dialects *dialects
	listing  modelindex.Listing
	found    Examined
}

// connect makes a connection step by step, so that it shows where it ends.
func (e *examiner) connect(ctx context.Context) []Leg {
	u, err := url.Parse(e.provider.URL)
	if err != nil {
		return []Leg{{Name: "dns", Err: errors.New("the address can't be read")}} // the reason would quote it
	}
	host := u.Hostname()
	var legs []Leg
	leg := func(name string, do func(context.Context) error) bool {
		ctx, cancel := context.WithTimeout(ctx, e.how.Limit)
		defer cancel()
		begin := time.Now()
		err := do(ctx)
		legs = append(legs, Leg{Name: name, Took: time.Since(begin), Err: err})
		return err == nil
	}
	if net.ParseIP(host) == nil && !leg("dns", func(ctx context.Context) error {
		_, err := net.DefaultResolver.LookupHost(ctx, host)
		return err
	}) {
		return legs
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
	var conn net.Conn
	if !leg("tcp", func(ctx context.Context) (err error) {
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(host, port))
		return err
	}) {
		return legs
	}
	defer conn.Close() //nolint:errcheck // nothing was sent on it
	if u.Scheme == "https" {
		leg("tls", func(ctx context.Context) error {
			return tls.Client(conn, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}).HandshakeContext(ctx)
		})
	}
	return legs
}

// tryKeys lists the models with each key.
func (e *examiner) tryKeys(ctx context.Context) {
	keys := e.provider.Keys
	if len(keys) == 0 && !e.provider.Pooled {
		keys = []config.Key{{}} // it wants none
	}
	e.found.Keys = make([]ExaminedKey, len(keys))
	listings := make([][]modelindex.Model, len(keys))
	turn := make(chan struct{}, keysAtOnce)
	var trying sync.WaitGroup
	for i, k := range keys {
		trying.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			found := ExaminedKey{Index: i}
			if k.Value != "" {
				found.Mask = config.Mask(k.Value.Reveal())
			}
			listings[i], found.Outcome = e.list(ctx, k.Value.Reveal())
			e.found.Keys[i] = found
		})
	}
	trying.Wait()
	for i, k := range e.found.Keys {
		if k.Outcome.Class == ClassSuccess { // what any of the keys may use is there
			e.found.Listed = true
			e.listing.Models = append(e.listing.Models, listings[i]...)
		}
	}
	source := sourceOf(e.provider)
	e.listing.Provider = e.provider.ID
	e.found.Models = len(distinct(e.listing.Models))
	e.listing.Models = discover.Classify(distinct(e.listing.Models), source.Rules(e.cfg.Routing.PremiumModels, e.cfg.Routing.FreeModels))
}

func distinct(models []modelindex.Model) (all []modelindex.Model) {
	seen := map[string]bool{}
	for _, m := range models {
		if !seen[m.ID] {
			seen[m.ID] = true
			all = append(all, m)
		}
	}
	return all
}

func (e *examiner) list(ctx context.Context, key string) ([]modelindex.Model, Outcome) {
	ctx, cancel := context.WithTimeout(ctx, e.how.Limit)
	defer cancel()
	call := e.client.call()
	begin := time.Now()
	models, err := discover.List(ctx, call, sourceOf(e.provider), key)
	v := classify.Verdict{Class: classify.Success}
	if refused, ok := errors.AsType[*discover.RefusedError](err); ok {
		v = refused.Verdict
	} else if err != nil {
		v = classify.Transport(ctx, err)
	}
	return models, call.outcome(v, time.Since(begin))
}

// compareModels looks for the models of the configuration in the list.
func (e *examiner) compareModels() {
	if !e.found.Listed {
		return
	}
	for _, u := range e.upstreams() {
		if discover.Chats(u.Model) && !u.NativeCompletions() && !e.lists(u.Model) {
			e.found.Missing = append(e.found.Missing, u.Model)
		}
	}
}

// lists says whether the provider has a model under this id, or under what it calls the same.
func (e *examiner) lists(model string) bool {
	plain := func(id string) string { return strings.TrimPrefix(strings.TrimSuffix(id, ":latest"), "models/") }
	return slices.ContainsFunc(e.listing.Models, func(m modelindex.Model) bool { return m.ID == model || plain(m.ID) == plain(model) })
}

// upstreams are those of the provider, one of each model.
func (e *examiner) upstreams() (all []config.Upstream) {
	for _, u := range e.cfg.Upstreams {
		if u.Provider == e.provider.ID && !slices.ContainsFunc(all, func(other config.Upstream) bool { return other.Model == u.Model }) {
			all = append(all, u)
		}
	}
	return all
}

// clockwatch makes calls and compares clocks with whom it calls. It is safe for concurrent use.
type clockwatch struct {
	client *upstream.Client

	mu    sync.Mutex
	ahead []time.Duration
}

// Do makes a call.
func (c *clockwatch) Do(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	begin := time.Now()
	resp, err := c.client.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	if there, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.ahead = append(c.ahead, offBy(begin, time.Now(), there))
	}
	return resp, nil
}

// offBy is by how much this clock is ahead of one that showed there at some moment from begin to end. What may be due to the time in between, and to
// the fraction of a second that a date leaves out, is not counted.
func offBy(begin, end, there time.Time) time.Duration {
	switch latest := there.Add(time.Second); {
	case begin.After(latest):
		return begin.Sub(latest)
	case end.Before(there):
		return end.Sub(there)
	}
	return 0
}

// call gives a client for one question.
func (c *clockwatch) call() *watched { return &watched{clockwatch: c} }

// watched notes what the last answer was. It is for one goroutine.
type watched struct {
	*clockwatch

	status int
	html   bool
}

// Do makes a call.
func (w *watched) Do(ctx context.Context, call upstream.Call) (*upstream.Response, error) {
	w.status, w.html = 0, false
	resp, err := w.clockwatch.Do(ctx, call)
	if err == nil {
		w.saw(resp)
	}
	return resp, err
}

func (w *watched) saw(resp *upstream.Response) {
	w.status = resp.Status
	w.html = strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/html")
}

// outcome sums up what a verdict says.
func (w *watched) outcome(v classify.Verdict, took time.Duration) Outcome {
	o := Outcome{Class: Class(v.Class), Reason: v.Reason, Status: w.status, HTML: w.html, Took: took}
	if v.Stated {
		o.Wait = v.Wait
	}
	if o.Class != ClassSuccess && o.Reason == "" {
		o.Reason = fmt.Sprintf("http %d", w.status)
	}
	return o
}
