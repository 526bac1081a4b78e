package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/process"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/goldentest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const (
	goodKey  = "sk-good-0123456789-abcdef"
	wrongKey = "sk-wrong-0123456789-abcdef"
	adminKey = "the-admin-key-of-the-tests"
)

// examine runs the checks for a configuration, in a directory of its own, and gives the report. Secrets must be nowhere in it.
func examine(t *testing.T, yaml string, change func(*Options)) Report {
	t.Helper()
	env := configtest.Environment(t, nil, map[string]string{"config.yaml": yaml})
	settings, err := process.LoadFrom(env, process.Overrides{})
	o := Options{Settings: settings, Invalid: err, Questions: dispatcher.OneQuestion, Limit: await.Limit}
	if change != nil {
		change(&o)
	}
	r := Run(t.Context(), o)
	var out strings.Builder
	require.NoError(t, r.WriteTable(&out, Look{}))
	require.NoError(t, r.WriteJSON(&out))
	for _, secret := range []string{goodKey, wrongKey, adminKey, "password-of-the-database", "secret-in-the-address"} {
		require.NotContains(t, out.String(), secret)
	}
	return r
}

// row gives the row of a check.
func (r Report) row(t *testing.T, check string) Row {
	t.Helper()
	var names []string
	for _, row := range r.Checks {
		if strings.HasPrefix(row.Check, check) {
			return row
		}
		names = append(names, row.Check)
	}
	require.Fail(t, "no such check", "%s is not among %s", check, names)
	panic("unreachable")
}

// vendor is an upstream of which each part can be put into another state.
type vendor struct {
	models func(w http.ResponseWriter, r *http.Request)
	chat   func(w http.ResponseWriter, r *http.Request)
}

func (v vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		if v.models == nil {
			v.models = text(http.StatusOK, `{"object":"list","data":[{"id":"large"},{"id":"small"}]}`)
		}
		v.models(w, r)
		return
	}
	if v.chat == nil {
		v.chat = stream(chunks("o", "k") + "data: [DONE]\n\n")
	}
	v.chat(w, r)
}

func chunks(words ...string) string {
	var events strings.Builder
	for _, w := range words {
		fmt.Fprintf(&events, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", w)
	}
	return events.String()
}

func stream(events string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, events)
	}
}

func text(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func refuse(status int, code, message string, header ...string) http.HandlerFunc {
	return text(status, fmt.Sprintf(`{"error":{"message":%q,"type":"x","code":%q}}`, message, code), header...)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	t.Cleanup(s.Close)
	return s
}

// one is a configuration with one provider.
func one(url string, more string) string {
	return `
server: {host: 127.0.0.1, port: 1, admin_key: ` + adminKey + `}
providers: [{id: p, url: "` + url + `", keys: [` + goodKey + `]}]
upstreams: [{id: u, provider: p, model: large}]
models: [{name: m, upstreams: [u]}]
` + more
}

// each state of an upstream is told from the others, and the row says what to do.
func TestProviderStates(t *testing.T) {
	t.Parallel()
	broken := chunks("o")
	tests := map[string]struct {
		vendor vendor
		check  string
		state  State
		found  string
		do     string
	}{
		"well":          {vendor{}, "provider p: answer of large", OK, "first piece after", ""},
		"key accepted":  {vendor{}, "provider p: key 1 sk-good-...", OK, "accepted", ""},
		"models":        {vendor{}, "provider p: models", OK, "2 listed", ""},
		"wrong key":     {vendor{models: refuse(401, "invalid_api_key", "Incorrect API key provided: "+goodKey)}, "provider p: key 1", Fail, "wrong, revoked or expired", "make a new key"},
		"forbidden":     {vendor{models: refuse(403, "forbidden", "no")}, "provider p: key 1", Fail, "not allowed", "allow"},
		"rate":          {vendor{models: refuse(429, "rate_limit_exceeded", "slow down", "Retry-After", "7")}, "provider p: key 1", Warn, "limit of requests, for 7.0 s", "wait"},
		"quota":         {vendor{models: refuse(429, "insufficient_quota", "You exceeded your current quota")}, "provider p: key 1", Fail, "quota is used up", "another key"},
		"payment":       {vendor{models: refuse(402, "payment_required", "no money")}, "provider p: key 1", Fail, "no balance", "top up"},
		"server error":  {vendor{models: refuse(500, "oops", "oops")}, "provider p: key 1", Fail, "the provider fails (http 500", "status page"},
		"page":          {vendor{models: text(200, "<!DOCTYPE html><html></html>", "Content-Type", "text/html")}, "provider p: key 1", Fail, "web page (http 200)", "providers.p.url"},
		"no json":       {vendor{models: text(200, "hello")}, "provider p: key 1", Fail, "no answer of an API", "providers.p.url"},
		"empty list":    {vendor{models: text(200, `{"object":"list","data":[]}`)}, "provider p: model large", OK, "not listed, and answers", ""},
		"no list":       {vendor{models: refuse(404, "not_found", "no such page")}, "provider p: key 1", OK, "has no list of models", ""},
		"path wrong":    {vendor{models: refuse(404, "not_found", "x"), chat: refuse(404, "not_found", "x")}, "provider p: key 1", Fail, "no such model or path", "providers.p.url"},
		"model missing": {vendor{models: text(200, `{"data":[{"id":"small"}]}`), chat: refuse(404, "model_not_found", "The model does not exist")}, "provider p: model large", Fail, "not among the 1", "mend the model"},
		"model refused": {vendor{models: text(200, `{"data":[{"id":"small"}]}`), chat: refuse(404, "model_not_found", "The model does not exist")}, "provider p: answer of large", Fail, "does not have the model", "mend the model"},
		"alias":         {vendor{models: text(200, `{"data":[{"id":"small"}]}`)}, "provider p: model large", OK, "it is not listed, and answers", ""},
		"stream ends":   {vendor{chat: stream(broken)}, "provider p: answer", Fail, "broke off", "goes on with another upstream"},
		"stream is cut": {vendor{chat: func(w http.ResponseWriter, r *http.Request) {
			stream(broken)(w, r)
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}}, "provider p: answer", Fail, "broke off", "goes on with another upstream"},
		"stream fails":    {vendor{chat: stream(broken + "data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n")}, "provider p: answer", Fail, "(", "status page"},
		"stream is page":  {vendor{chat: text(200, "<html><body>Login</body></html>", "Content-Type", "text/html")}, "provider p: answer", Fail, "web page", "providers.p.url"},
		"stream is empty": {vendor{chat: stream("")}, "provider p: answer", Fail, "broke off", ""},
		"whole":           {vendor{chat: text(200, `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}]}`)}, "provider p: answer", Warn, "in one piece", "proxy"},
		"only thoughts":   {vendor{chat: stream("data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")}, "provider p: answer", OK, "without text", ""},
		"limit of answer": {vendor{chat: refuse(429, "rate_limit_exceeded", "slow down")}, "provider p: answer", Warn, "limit of requests", "wait"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, one(serve(t, tt.vendor).URL+"/v1", ""), nil)
			row := r.row(t, tt.check)
			require.Equal(t, tt.state, row.State, row)
			require.Contains(t, row.Found, tt.found)
			require.Contains(t, row.Do, tt.do)
			require.Equal(t, row.State == OK, row.Do == "", row)
			if row.State == Fail {
				require.Equal(t, Fail, r.State)
			}
			require.Equal(t, OK, r.row(t, "database").State, "the other checks are made all the same")
		})
	}
}

// where the way to a provider ends is told, and nothing that needs it counts as failed.
func TestConnectionStates(t *testing.T) {
	t.Parallel()
	plain := serve(t, vendor{}).URL
	secured := httptest.NewUnstartedServer(vendor{})
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	t.Cleanup(secured.Close)
	tests := map[string]struct{ url, found, do string }{
		"refused":           {"http://" + freeport.Addr(t) + "/v1", "connection refused", "start the server"},
		"unknown authority": {secured.URL + "/v1", "unknown authority", "SSL_CERT_FILE"},
		"no tls":            {strings.Replace(plain, "http:", "https:", 1) + "/v1?token=secret-in-the-address", "speaks no TLS", "http://"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := examine(t, one(tt.url, ""), nil)
			row := r.row(t, "provider p: connection")
			require.Equal(t, Fail, row.State)
			require.Contains(t, row.Found, tt.found)
			require.Contains(t, row.Do, tt.do)
			require.Equal(t, Skipped, r.row(t, "provider p: keys").State)
		})
	}
}

// what is wrong with a name is told from what is wrong with who looks it up.
func TestNames(t *testing.T) {
	t.Parallel()
	d := &doctor{Options: Options{Limit: time.Second}}
	for found, err := range map[string]error{
		"no such host":             &net.DNSError{IsNotFound: true},
		"can't be looked up":       &net.DNSError{IsTemporary: true},
		"no answer within 1.0 s":   &net.DNSError{IsTimeout: true},
		"the certificate is exp":   x509.CertificateInvalidError{Reason: x509.Expired},
		"is for another host":      x509.HostnameError{Certificate: new(x509.Certificate), Host: "h"},
		"the handshake fails":      io.EOF,
		"tcp: no connection":       syscall.EHOSTUNREACH,
		"tcp: no answer within 1.": context.DeadlineExceeded,
	} {
		leg := dispatcher.Leg{Name: "tls", Err: err}
		if _, ok := errors.AsType[*net.DNSError](err); ok {
			leg.Name = "dns"
		} else if strings.HasPrefix(found, "tcp") {
			leg.Name = "tcp"
		}
		got, do := d.unreached(config.Provider{ID: "p"}, leg)
		require.Contains(t, got, found)
		require.NotEmpty(t, do)
	}
}

// a provider that says nothing ends with the limit, and keeps no other check from its result.
func TestSilentProvider(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	hang := func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-over:
		}
	}
	silent := serve(t, vendor{models: hang, chat: hang})
	t.Cleanup(func() { close(over) })
	r := examine(t, one(silent.URL+"/v1", ""), func(o *Options) { o.Limit = 50 * time.Millisecond })
	failed := 0
	for _, row := range r.Checks {
		if strings.HasPrefix(row.Check, "provider p: ") && row.State == Fail {
			failed++
			require.Regexp(t, "no (whole )?answer", row.Found)
		}
	}
	require.Equal(t, 1, failed)
}

// each key of a pool is tried; a dead one does not hide the others.
func TestKeysOfAPool(t *testing.T) {
	t.Parallel()
	list := text(http.StatusOK, `{"data":[{"id":"large"}]}`)
	s := serve(t, vendor{models: func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Authorization"), "wrong") {
			refuse(http.StatusUnauthorized, "invalid_api_key", "no")(w, r)
			return
		}
		list(w, r)
	}})
	yaml := strings.Replace(one(s.URL+"/v1", ""), goodKey, wrongKey+", "+goodKey, 1)
	r := examine(t, yaml, nil)
	require.Equal(t, Fail, r.row(t, "provider p: key 1 sk-wrong...").State)
	require.Equal(t, OK, r.row(t, "provider p: key 2 sk-good-...").State)
	require.Equal(t, OK, r.row(t, "provider p: answer of large").State)

	r = examine(t, yaml, func(o *Options) { o.Questions = dispatcher.NoQuestions })
	require.Equal(t, Skipped, r.row(t, "provider p: answer").State)
}

// each configured model is asked if that is wished.
func TestAllModels(t *testing.T) {
	t.Parallel()
	s := serve(t, vendor{})
	yaml := strings.Replace(one(s.URL+"/v1", ""), "model: large}", "model: large}, {id: v, provider: p, model: small}, {id: w, provider: p, model: text-embedding-3-small}", 1)
	r := examine(t, yaml, func(o *Options) { o.Questions = dispatcher.AllModels })
	require.Equal(t, OK, r.row(t, "provider p: answer of large").State)
	require.Equal(t, OK, r.row(t, "provider p: answer of small").State)
	require.Equal(t, 2, strings.Count(fmt.Sprint(r.Checks), "answer of"))
}

// the clock is compared with those of the providers, of which a single one proves nothing.
func TestClock(t *testing.T) {
	t.Parallel()
	late := func(by time.Duration) string {
		return serve(t, vendor{models: func(w http.ResponseWriter, r *http.Request) {
			text(http.StatusOK, `{"data":[{"id":"large"}]}`, "Date", time.Now().Add(by).UTC().Format(http.TimeFormat))(w, r)
		}, chat: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", time.Now().Add(by).UTC().Format(http.TimeFormat))
			stream(chunks("ok")+"data: [DONE]\n\n")(w, r)
		}}).URL + "/v1"
	}
	tests := map[string]struct {
		urls  []string
		state State
		found string
	}{
		"right":      {[]string{late(0)}, OK, "those of 1 provider"},
		"fast":       {[]string{late(-time.Hour)}, Warn, "fast by the clocks of 1"},
		"slow":       {[]string{late(time.Hour), late(time.Hour)}, Warn, "slow by the clocks of 2"},
		"one of two": {[]string{late(0), late(time.Hour)}, Warn, "by the clock of p1 alone"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var yaml strings.Builder
			yaml.WriteString("server: {host: 127.0.0.1, port: 1}\nproviders:\n")
			for i, url := range tt.urls {
				fmt.Fprintf(&yaml, "  - {id: p%d, url: %q, key: %s}\n", i, url, goodKey)
			}
			row := examine(t, yaml.String(), nil).row(t, "clock")
			require.Equal(t, tt.state, row.State, row)
			require.Contains(t, row.Found, tt.found)
		})
	}
	require.Equal(t, Skipped, clock(nil).State)
}

// what is wrong with the configuration is told, a row each, and a gateway is looked at all the same.
func TestConfigurationRows(t *testing.T) {
	t.Parallel()
	r := examine(t, "server: {host: 127.0.0.1, port: 0}\nlog: {level: loud}\ncolour: red\n", func(o *Options) { o.URL = "http://" + freeport.Addr(t) })
	require.Equal(t, 4, r.Counts[Fail]+r.Counts[Warn])
	require.Contains(t, r.row(t, "configuration").Found, "config.yaml:1: server.port")
	require.Contains(t, r.row(t, "gateway: http://").Found, "refused")
}

// directories that can't be used are told before a start fails.
func TestDirectories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	row := directory(t.Context(), "x", filepath.Join(dir, "none", "deep"), true)
	require.Equal(t, OK, row.State, row)
	require.Contains(t, row.Found, "made at the first start")
	require.NoDirExists(t, filepath.Join(dir, "none"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), make([]byte, 2048), 0o600))
	require.Contains(t, directory(t.Context(), "x", dir, true).Found, "2.0 KiB used")
	row = directory(t.Context(), "x", file, true)
	require.Equal(t, Fail, row.State)
	require.Contains(t, row.Do, "set x to another place")
	if os.Geteuid() != 0 { // root may write everywhere
		locked := filepath.Join(dir, "locked")
		require.NoError(t, os.Mkdir(locked, 0o500))
		require.Equal(t, Fail, directory(t.Context(), "x", locked, true).State)
	}
}

// a database that can't be had is told without its password.
func TestDatabaseRows(t *testing.T) {
	t.Parallel()
	s := serve(t, vendor{})
	port := strconv.Itoa(freeport.Port(t))
	r := examine(t, one(s.URL+"/v1", "sessions: {database: 'postgres://me:password-of-the-database@127.0.0.1:"+port+"/db?sslmode=disable'}\n"), nil)
	row := r.row(t, "database: PostgreSQL")
	require.Equal(t, Fail, row.State)
	require.Contains(t, row.Found, "refused")
}

// the table is aligned, has colours on a terminal only, and wraps long cells there.
func TestTable(t *testing.T) {
	t.Parallel()
	r := newReport("v1.2.3", []Row{
		{Check: "configuration", State: OK, Found: "config.yaml is valid: 2 providers, 3 upstreams, 2 models"},
		{Check: "gateway", State: Skipped, Found: "nothing listens on http://127.0.0.1:8100", Do: "start it with hydrallm, or name another address with --url"},
		{Check: "provider groq: key 1 gsk_abcd...", State: Fail, Found: "refused: wrong, revoked or expired (http 401 invalid_api_key)", Do: "make a new key at the provider and put it in the place of this one"},
		{Check: "provider größe: key 1 " + goodKey, State: Warn, Found: "two\nlines and \x1b[31mcolour", Do: "wait"},
	}, []string{goodKey})
	for name, look := range map[string]Look{"plain.txt": {}, "terminal.txt": {Coloured: true, Width: 100}, "narrow.txt": {Width: 20}} {
		var b strings.Builder
		require.NoError(t, r.WriteTable(&b, look))
		goldentest.Compare(t, name, []byte(b.String()))
	}
	var b strings.Builder
	require.NoError(t, r.WriteJSON(&b))
	goldentest.Compare(t, "report.json", []byte(b.String()))
}
