package cli_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
)

// a gateway that runs is looked at from another process, as it were, and goes on.
func TestDoctor(t *testing.T) {
	t.Parallel()
	upstream := fakellm.Start(t)
	upstream.Offer("x")
	upstream.Handle(fakellm.Talk("all is well"))
	port := strconv.Itoa(freeport.Port(t))
	x := newTerminal(t, `
server: {host: 127.0.0.1, port: `+port+`, admin_key: the-key-of-the-admin}
providers: [{id: p, url: "`+upstream.URL()+`/v1", key: a-secret-that-is-not-shown}]
upstreams: [{id: u, provider: p, model: x}]
models: [{name: m, upstreams: [u]}]
`)
	require.Equal(t, 0, x.run(t.Context(), "doctor"), x.out.String())
	require.Contains(t, x.out.String(), "nothing listens on http://127.0.0.1:"+port)
	require.NoDirExists(t, x.dir+"/data", "it has made nothing")

	stop := x.start(t)
	await.True(t, func() bool {
		status, _ := tryCall(t, "http://127.0.0.1:"+port+"/readyz")
		return status == http.StatusOK
	})
	report := ""
	await.True(t, func() bool { // a gateway with too much to do is not ready now and then
		y := &terminal{dir: x.dir}
		code := y.run(t.Context(), "doctor", "--json")
		report = y.out.String()
		return code == 0
	}, "a report without a failure")
	require.NotContains(t, report, "a-secret-that-is-not-shown")
	require.NotContains(t, report, "the-key-of")
	require.Equal(t, int64(0), gjson.Get(report, "counts.fail").Int())
	for _, check := range []string{"gateway: ready", "gateway: status", "gateway: answer of m", "provider p: answer of x", "database: SQLite", "disk: nats.store_dir"} {
		require.Equal(t, "ok", gjson.Get(report, `checks.#(check=="`+check+`").state`).Str, "%s: %s", check, report)
	}
	await.True(t, func() bool {
		status, _ := tryCall(t, "http://127.0.0.1:"+port+"/readyz")
		return status == http.StatusOK
	}, "the gateway was not disturbed")
	require.Equal(t, 0, stop(), x.errOut.String())
}

// the exit code tells a failed check from a command line that makes no sense.
func TestDoctorExitCodes(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		args []string
		code int
	}{
		"a failure":  {nil, 1},
		"no file":    {[]string{"--config", "none.yaml"}, 1},
		"no address": {[]string{"--url", "127.0.0.1:8100"}, 2},
		"a password": {[]string{"--url", "http://me:secret@127.0.0.1:8100"}, 2},
		"no time":    {[]string{"--timeout", "0s"}, 2},
		"a flag":     {[]string{"--dance"}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, valid)
			require.Equal(t, tt.code, x.run(t.Context(), append([]string{"doctor"}, tt.args...)...), x.out.String())
			require.NotContains(t, x.out.String(), "a-secret")
		})
	}
}

// tryCall asks a gateway that may not be there yet.
func tryCall(t *testing.T, url string) (status int, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}
