package ollama

import (
	"context"
	"errors"
	"io"
	"math/bits"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai/rawjson"
)

// Windows that are taken for granted, in tokens.
const (
	certainWindow = 2048 // every server has it, so nobody needs to be asked
	usualWindow   = 4096 // the default of servers that do not say more
)

// How long things are believed, and how much is kept and read.
const (
	factsFor     = time.Minute
	raisedFor    = 5 * time.Minute // a server keeps an idle model for this long
	askLimit     = 3 * time.Second
	maxFactsBody = 16 << 20
	maxStates    = 1024
)

// modelKey names a model on a server.
type modelKey struct{ base, model string }

// state is what is known of a model.
type state struct {
	facts  facts
	raised int // the window it was loaded with for the last native call, while that is likely to be so
	until  time.Time
}

// facts are what a server says of a model.
type facts struct {
	known  bool // false: it is not such a server, or the model runs elsewhere; it is left alone
	usual  int  // the window without asking for one
	most   int  // the largest window that the model can have, 0 when unknown
	loaded int  // the window it runs with, 0 when it does not run
	until  time.Time
}

// window is the one to ask for, or 0 for a call that needs none.
func (d *Dialect) window(ctx context.Context, call upstream.Call) int {
	need := estimate(call.Body)
	key := modelKey{call.URL, rawjson.Text(orEmpty(rawjson.Get(call.Body, "model")))}
	st := d.state(key)
	if need == 0 || st.raised == 0 && need <= certainWindow {
		return 0
	}
	f := st.facts
	if f.until.Before(time.Now()) {
		f = d.ask(ctx, call, key.model)
	}
	n := choose(need, f, st.raised)
	d.keep(key, f, n)
	return n
}

// orEmpty gives a JSON string, whatever the value is.
func orEmpty(raw []byte) []byte {
	if len(raw) == 0 || raw[0] != '"' {
		return []byte(`""`)
	}
	return raw
}

// choose decides on the window for a request that needs so many tokens; 0 = the server's own choice.
//
// A server loads a model anew, which takes long, for each call that wants another window than the one before; a call of the other endpoint
// wants the usual one. So what was raised stays raised for a while, for small requests too, and a window that the model runs with is taken
// if it is large enough: that it is there does not mean that the next call of the other endpoint would get it.
func choose(need int, f facts, raised int) int {
	if !f.known || raised == 0 && need <= f.usual {
		return 0
	}
	n := max(raised, f.loaded)
	if n < need {
		n = 1 << bits.Len(uint(need-1)) // the next power of two: few different windows, few loads
	}
	if f.most > 0 {
		n = min(n, f.most)
	}
	if n <= f.usual {
		return 0
	}
	return n
}

// state gives what is known of a model now.
func (d *Dialect) state(key modelKey) state {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.models[key]
	if st == nil {
		return state{}
	}
	now := *st
	if now.until.Before(time.Now()) {
		now.raised = 0
	}
	return now
}

// keep remembers facts, and the window of a native call.
func (d *Dialect) keep(key modelKey, f facts, raised int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	st := d.models[key]
	if st == nil {
		if len(d.models) >= maxStates {
			clear(d.models) // someone invents models; what was known is asked again
		}
		st = &state{}
		d.models[key] = st
	}
	st.facts = f
	if raised > 0 {
		st.raised, st.until = raised, time.Now().Add(raisedFor)
	}
}

// ask asks a server about a model. One that does not know it is left alone for a while: the call itself will show what is wrong.
func (d *Dialect) ask(ctx context.Context, call upstream.Call, model string) facts {
	body := append(rawjson.AppendString([]byte(`{"model":`), model), '}')
	shown, err := d.query(ctx, call, http.MethodPost, "/api/show", body)
	if err != nil && !errors.Is(err, errUnknown) {
		return facts{} // it may answer the next time
	}
	f := facts{until: time.Now().Add(factsFor)}
	if err != nil || shown.Get("remote_host").Str != "" || !shown.Get("model_info").IsObject() && !shown.Get("details").IsObject() {
		return f
	}
	f.known, f.usual, f.most = true, configured(shown), trainedFor(shown)
	running, err := d.query(ctx, call, http.MethodGet, "/api/ps", nil)
	if err != nil {
		return f
	}
	for _, m := range running.Get("models").Array() {
		for _, name := range [...]string{m.Get("name").Str, m.Get("model").Str} {
			if name == model || name == model+":latest" {
				f.loaded = tokens(m.Get("context_length"))
			}
		}
	}
	return f
}

// configured is the window that a model has without asking: its own setting, or else the usual one.
func configured(shown gjson.Result) int {
	if m := numCtx.FindStringSubmatch(shown.Get("parameters").Str); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits, few enough
		return n
	}
	return usualWindow
}

var numCtx = regexp.MustCompile(`(?m)^\s*num_ctx\s+"?(\d{1,9})"?\s*$`)

// trainedFor is the context length in the description of a model, whose member is named for the architecture.
func trainedFor(shown gjson.Result) int {
	info := shown.Get("model_info")
	return tokens(info.Get(gjson.Escape(info.Get(`general\.architecture`).Str + ".context_length")))
}

// tokens reads a sensible number of tokens; anything else is 0.
func tokens(v gjson.Result) int {
	if v.Type != gjson.Number || v.Num < 1 || v.Num > 1<<30 {
		return 0
	}
	return int(v.Num)
}

// What a server may answer instead of what it was asked.
var (
	errUnknown = errors.New("the server does not know the operation or the model")
	errFailed  = errors.New("the server failed")
)

// query asks the server of a call a question about itself.
func (d *Dialect) query(ctx context.Context, call upstream.Call, method, path string, body []byte) (gjson.Result, error) {
	question := upstream.Call{
		Method: method, URL: native(call.URL, path), Key: call.Key, Header: jsonHeader(call.Header), Body: body,
		HeadersTimeout: askLimit, RequestTimeout: askLimit,
	}
	authorize(question)
	resp, err := d.client.Do(ctx, question)
	if err != nil {
		return gjson.Result{}, err
	}
	defer resp.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxFactsBody))
	if err != nil {
		return gjson.Result{}, err
	}
	if resp.Status/100 == 5 || resp.Status == http.StatusTooManyRequests {
		return gjson.Result{}, errFailed
	}
	if resp.Status/100 != 2 || !rawjson.Valid(answer) {
		return gjson.Result{}, errUnknown
	}
	return gjson.ParseBytes(answer), nil
}
