package doctor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"hydrallm/services/dispatcher"
	"hydrallm/services/hydrallm/internal/phrase"
	"hydrallm/shared/certificate"
	"hydrallm/shared/openai"
	"hydrallm/shared/process"
	"hydrallm/shared/query"
)

// dialLimit is how long it takes at most to find out whether something listens on this machine.
const dialLimit = 2 * time.Second

// gateway looks at a gateway that runs.
func (d *doctor) gateway(ctx context.Context) []Row {
	base := strings.TrimSuffix(strings.TrimSuffix(d.URL, "/"), "/v1")
	if base == "" {
		if d.Settings.Config == nil {
			return []Row{{Check: "gateway", State: Skipped, Found: "without a valid configuration its address is not known (--url)"}}
		}
		base = d.Settings.Server.URL()
		if !listens(ctx, base) {
			return []Row{{Check: "gateway", State: Skipped, Found: "nothing listens on " + base, Do: "start it with hydrallm, or name another address with --url"}}
		}
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if c := d.Settings.Config; c != nil && c.Server.TLS.On() { // its certificate is trusted beside those of the system
		trust, err := certificate.Files{Cert: c.Server.TLS.Cert, Key: c.Server.TLS.Key}.Client()
		if err != nil {
			return []Row{{Check: "gateway", State: Fail, Found: err.Error(), Do: "mend the files of server.tls: the gateway does not start without them"}}
		}
		transport.TLSClientConfig = trust
	}
	g := &gateway{base: base, limit: d.Limit, client: &http.Client{
		Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // keys are for nobody else
		},
	}}
	if d.Settings.Config != nil {
		g.admin = d.Settings.Server.AdminKey.Reveal()
		if keys := d.Settings.Server.ClientKeys; len(keys) > 0 {
			g.key = keys[0].Reveal()
		} else {
			g.key = g.admin
		}
	}
	rows, ok := g.there(ctx)
	if !ok {
		return rows
	}
	rows = append(rows, g.health(ctx)...)
	rows = append(rows, g.status(ctx)...)
	if d.Questions == dispatcher.NoQuestions {
		return append(rows, Row{Check: "gateway: answer", State: Skipped, Found: "not asked (--no-stream)"})
	}
	return append(rows, g.answer(ctx, d.model(), answerLimits*d.Limit))
}

// model is the one to ask the gateway for.
func (d *doctor) model() string {
	if d.Model != "" {
		return d.Model
	}
	if d.Settings.Config != nil {
		for _, m := range d.Settings.Models {
			if m.Usable() {
				return m.Name
			}
		}
	}
	return "auto"
}

func listens(ctx context.Context, base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	conn, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

// gateway asks one that runs.
type gateway struct {
	base       string
	admin, key string // "" = none is known
	limit      time.Duration
	client     *http.Client
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// ask asks for a path. The error is that of the connection.
func (g *gateway) ask(ctx context.Context, path string, header http.Header) (status int, body []byte, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.base+path, http.NoBody)
	if err != nil {
		return 0, nil, 0, err
	}
	maps.Copy(req.Header, header)
	begin := time.Now()
	resp, err := g.client.Do(req)
	if err != nil {
		return 0, nil, 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return resp.StatusCode, body, time.Since(begin), err
}

// there says whether a gateway is at the address, and which version it is.
func (g *gateway) there(ctx context.Context) (rows []Row, ok bool) {
	row := Row{Check: "gateway: " + g.base, State: Fail}
	status, body, took, err := g.ask(ctx, "/v1", nil)
	var banner struct{ Status, Version string }
	switch {
	case err != nil:
		row.Found, row.Do = "it can't be reached: "+reason(err), "start it, or mend the address in --url or server.host and server.port"
	case json.Unmarshal(body, &banner) != nil || banner.Status != "online" || banner.Version == "":
		row.Found = fmt.Sprintf("what listens there is no HydraLLM (http %d)", status)
		row.Do = "stop the other program, or give the gateway another port with server.port or --port"
	case banner.Version != process.Version():
		row.State, row.Found = OK, "version "+banner.Version+", this program is "+process.Version()+", "+span(took)
		return []Row{row}, true
	default:
		row.State, row.Found = OK, "version "+banner.Version+", "+span(took)
		return []Row{row}, true
	}
	return []Row{row}, false
}

// reason is an error of a call without the address, which may hold a secret.
func reason(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	return err.Error()
}

// health asks the two health checks. A proxy may not pass them on.
func (g *gateway) health(ctx context.Context) (rows []Row) {
	for _, c := range []struct{ name, path string }{{"alive", "/healthz"}, {"ready", "/readyz"}} {
		row := Row{Check: "gateway: " + c.name, State: OK}
		status, body, took, err := g.ask(ctx, c.path, nil)
		var said struct{ Status, Reason string }
		switch {
		case err != nil:
			row.State, row.Found, row.Do = Fail, "no answer: "+reason(err), "look at the log of the gateway; restart it if it hangs"
		case status == http.StatusNotFound || json.Unmarshal(body, &said) != nil || said.Status == "":
			row.State, row.Found = Skipped, fmt.Sprintf("%s is not passed on to the gateway (http %d)", c.path, status)
		case status != http.StatusOK:
			row.State, row.Found, row.Do = Fail, said.Status+": "+said.Reason, ready(said.Reason)
		case said.Reason != "":
			row.State, row.Found, row.Do = Warn, said.Status+": "+said.Reason, ready(said.Reason)
		default:
			row.Found = said.Status + ", " + span(took)
		}
		rows = append(rows, row)
	}
	return rows
}

func ready(reason string) string {
	switch {
	case strings.Contains(reason, "NATS"):
		return "look at the NATS server, and at the lines about NATS in the log"
	case strings.Contains(reason, "dispatcher"):
		return "start a dispatcher, or look why it does not start"
	case strings.Contains(reason, "stopping"):
		return "wait for the new process"
	case strings.Contains(reason, "database"):
		return "look at the database; what is to be stored waits meanwhile"
	}
	return "look at the log of the gateway"
}

// status reads what the dispatchers of the gateway know.
func (g *gateway) status(ctx context.Context) []Row {
	row := Row{Check: "gateway: status", State: Fail}
	if g.admin == "" {
		row.State, row.Found, row.Do = Skipped, "no admin key is known here", "set ADMIN_API_KEY to see providers, keys and circuits"
		return []Row{row}
	}
	code, body, _, err := g.ask(ctx, "/v1/admin/status", http.Header{"X-Admin-Key": {g.admin}})
	var s query.Status
	switch {
	case err != nil:
		row.Found, row.Do = "no answer: "+reason(err), "look at the log of the gateway"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		row.Found = fmt.Sprintf("the gateway refuses the admin key (http %d)", code)
		row.Do = "use the same server.admin_key or ADMIN_API_KEY here as the gateway does; after a change it must be restarted"
	case code == http.StatusNotFound:
		row.State, row.Found = Skipped, "the admin routes are not passed on to the gateway"
	case code != http.StatusOK || json.Unmarshal(body, &s) != nil:
		row.Found, row.Do = fmt.Sprintf("it does not tell (http %d)", code), "look at the log of the gateway"
	default:
		row.State, row.Found = OK, phrase.Count(len(s.Providers), "provider")+", "+phrase.Count(len(s.Chains), "chain")
		return append([]Row{row}, known(s)...)
	}
	return []Row{row}
}

// known says what is in the way of providers, keys and circuits.
func known(s query.Status) (rows []Row) {
	for _, id := range slices.Sorted(maps.Keys(s.Providers)) {
		if p := s.Providers[id]; !p.Healthy && p.Problem != "" {
			rows = append(rows, Row{Check: "gateway: provider " + id, State: Warn, Found: p.Problem, Do: "see the rows of the provider below, or its page in the web interface"})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.KeyStatistics)) {
		resting, longest, why := 0, 0, ""
		for _, k := range s.KeyStatistics[id].Keys {
			if k.Remaining > 0 {
				resting++
				longest = max(longest, k.Remaining)
				why = k.Reason
			}
		}
		if resting > 0 {
			rows = append(rows, Row{
				Check: "gateway: keys of " + id, State: Warn,
				Found: fmt.Sprintf("%d of %d rest, the last for %s (%s)", resting, s.KeyStatistics[id].Total, span(time.Duration(longest)*time.Second), why),
				Do:    "wait, add keys, or look whether they work again with POST /v1/admin/probe?force=true",
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Circuits)) {
		if c := s.Circuits[id]; c.State == "open" {
			rows = append(rows, Row{
				Check: "gateway: circuit of " + id, State: Warn, Found: "open for another " + span(c.Remaining),
				Do: "it failed several times in a row and is left alone; the row of its provider says why",
			})
		}
	}
	return rows
}

// answer asks for a streamed answer through the whole pipeline.
func (g *gateway) answer(ctx context.Context, model string, limit time.Duration) Row {
	row := Row{Check: "gateway: answer of " + model, State: Fail}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	body, err := json.Marshal(map[string]any{
		"model": model, "stream": true, "max_tokens": 16, "messages": []any{map[string]string{"role": "user", "content": "Reply with the word ok."}},
	})
	if err != nil {
		row.Found = err.Error()
		return row
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		row.Found = reason(err)
		return row
	}
	req.Header.Set("Content-Type", "application/json")
	if g.key != "" {
		req.Header.Set("Authorization", "Bearer "+g.key)
	}
	begin := time.Now()
	resp, err := g.client.Do(req)
	if err != nil {
		row.Found, row.Do = "no answer: "+reason(err), "look at the log of the gateway"
		return row
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if resp.StatusCode != http.StatusOK {
		row.Found, row.Do = refusal(resp)
		return row
	}
	first, err := readStream(resp.Body, begin)
	if err != nil {
		row.Found, row.Do = err.Error(), "look for the request "+resp.Header.Get("X-Request-Id")+" in the web interface or the log"
		return row
	}
	row.State = OK
	row.Found = fmt.Sprintf("from %s, model %s, attempt %s, first piece after %s, whole after %s", orUnknown(resp.Header.Get("X-Gateway-Provider")),
		orUnknown(resp.Header.Get("X-Gateway-Model")), orUnknown(resp.Header.Get("X-Gateway-Attempts")), span(first), span(time.Since(begin)))
	if n, err := strconv.Atoi(resp.Header.Get("X-Gateway-Attempts")); err == nil && n > 1 {
		row.State, row.Do = Warn, "the first upstream failed; the rows of the providers say why"
	}
	return row
}

func orUnknown(text string) string {
	if text == "" {
		return "?"
	}
	return text
}

// refusal is what the gateway says instead of an answer, and what to do.
func refusal(resp *http.Response) (found, do string) {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came of it
	var said struct {
		Error struct{ Message string }
	}
	_ = json.Unmarshal(data, &said) // it may be the page of a proxy
	found = fmt.Sprintf("http %d: %s", resp.StatusCode, said.Error.Message)
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		do = "set CLIENT_API_KEYS or ADMIN_API_KEY here to what the gateway takes"
	case http.StatusNotFound:
		do = "name a model with --model; GET /v1/models lists them"
	case http.StatusTooManyRequests:
		do = "wait, or raise the limits of the client key"
	default:
		do = "look at the rows of the providers"
	}
	return found, do
}

// readStream reads an event stream to its end, and says when its first event came.
func readStream(body io.Reader, begin time.Time) (first time.Duration, err error) {
	events := openai.NewReader(bufio.NewReader(io.LimitReader(body, maxAnswer)), 0)
	for {
		e, err := events.Next()
		switch {
		case errors.Is(err, io.EOF):
			return first, errors.New("the stream broke off")
		case err != nil:
			return first, errors.New("the stream broke off: " + reason(err))
		case openai.IsDone(bytes.TrimSpace(e.Data)):
			return first, nil
		}
		var said struct {
			Error *struct{ Message string }
		}
		if json.Unmarshal(e.Data, &said) == nil && said.Error != nil {
			return first, errors.New("the stream reports an error: " + said.Error.Message)
		}
		if first == 0 && len(e.Data) > 0 {
			first = time.Since(begin)
		}
	}
}
