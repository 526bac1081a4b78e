package cli_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"
	"go.uber.org/goleak"

	"hydrallm/services/hydrallm/internal/cli"
	"hydrallm/shared/config"
	"hydrallm/shared/config/configtest"
	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/certtest"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/output"
)

// fasthttp keeps the date of its answers in a goroutine for the life of the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"))
}

// terminal is a command line in a directory of its own.
type terminal struct {
	dir         string
	env         map[string]string
	in          io.Reader
	local       func(port string) string
	out, errOut output.Buffer
}

func newTerminal(t *testing.T, yaml string) *terminal {
	t.Helper()
	x := &terminal{dir: t.TempDir()}
	if yaml != "" {
		require.NoError(t, os.WriteFile(filepath.Join(x.dir, "config.yaml"), []byte(yaml), 0o600))
	}
	return x
}

func (x *terminal) run(ctx context.Context, args ...string) int {
	app := cli.App{Ctx: ctx, In: x.in, Local: x.local, Out: &x.out, ErrOut: &x.errOut, Env: config.Environment{
		Dir: x.dir, Lookup: configtest.Variables(x.env),
	}}
	return app.Run(args)
}

// start runs a command until the function that it gives is called, which returns the exit code.
func (x *terminal) start(t *testing.T, args ...string) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- x.run(ctx, args...) }()
	return func() int {
		cancel()
		select {
		case c := <-code:
			return c
		case <-time.After(await.Limit):
			t.Fatal("the command does not end")
			panic("unreachable")
		}
	}
}

// the pair of server.tls is looked at by the check.
func TestCheckCertificate(t *testing.T) {
	t.Parallel()
	one, two := certtest.New(t, 1), certtest.New(t, 2)
	sound := certtest.Until(t, 3, time.Now().AddDate(0, 3, 0))
	tests := map[string]struct {
		cert, key []byte
		code      int
		want      string
	}{
		"sound":       {sound.Cert, sound.Key, 0, "0 warnings"},
		"missing":     {nil, nil, 1, "cert.pem: no such file"},
		"without key": {one.Cert, nil, 1, "key.pem: no such file"},
		"mismatched":  {one.Cert, two.Key, 1, "does not match"},
		"ends soon":   {one.Cert, one.Key, 0, "cert.pem ends on "},
		"has ended":   {nil, nil, 0, "cert.pem has ended on "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, strings.Replace(valid, "{host: 127.0.0.1}", "{host: 127.0.0.1, tls: {cert_file: cert.pem, key_file: key.pem}}", 1))
			if name == "has ended" {
				ended := certtest.Until(t, 4, time.Now().Add(-time.Minute))
				tt.cert, tt.key = ended.Cert, ended.Key
			}
			if tt.cert != nil {
				require.NoError(t, os.WriteFile(filepath.Join(x.dir, "cert.pem"), tt.cert, 0o600))
			}
			if tt.key != nil {
				require.NoError(t, os.WriteFile(filepath.Join(x.dir, "key.pem"), tt.key, 0o600))
			}
			require.Equal(t, tt.code, x.run(t.Context(), "check"), x.errOut.String())
			require.Contains(t, x.out.String(), tt.want)
		})
	}
}

const valid = `
server: {host: 127.0.0.1}
providers: [{id: p, url: "http://127.0.0.1:1/v1", key: a-secret-that-is-not-shown}]
upstreams: [{id: u, provider: p, model: x}]
models: [{name: m, upstreams: [u]}]
`

func TestCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		yaml string
		env  map[string]string
		args []string
		code int
		out  []string
		err  []string
	}{
		"valid":          {yaml: valid, code: 0, out: []string{"config.yaml is valid: 1 provider, 1 upstream, 1 model, 0 warnings"}},
		"warning":        {yaml: valid + "colour: red\n", code: 0, out: []string{"warning: ", "config.yaml:6: colour: unknown field"}},
		"errors":         {yaml: "server: {host: localhost, port: 0}\nlog: {level: loud}\ncolour: red\n", code: 1, out: []string{"error: ", "config.yaml:1: server.port:", "config.yaml:2: log.level:", "warning: ", "colour"}, err: []string{"2 errors, 1 warning"}},
		"strict":         {yaml: valid, args: []string{"--strict"}, code: 0, out: []string{"0 warnings"}},
		"strict, warned": {yaml: valid + "colour: red\n", args: []string{"--strict"}, code: 1, out: []string{"colour"}, err: []string{"0 errors, 1 warning"}},
		"strict, empty":  {args: []string{"--strict"}, code: 1, out: []string{"nothing is configured"}},
		"no providers":   {yaml: "server: {host: localhost}\n", code: 0, out: []string{"warning: the file has no providers", "0 models, 1 warning"}},
		"every section":  {yaml: valid + "web: {enabled: false, cache_ttl: 1h}\n", code: 0, out: []string{"0 warnings"}},
		"named file":     {yaml: valid, args: []string{"config.yaml"}, code: 0, out: []string{"is valid"}},
		"missing file":   {args: []string{"none.yaml"}, code: 1, err: []string{"none.yaml: no such file"}},
		"no file":        {code: 0, out: []string{"environment is valid"}},
		"environment":    {env: map[string]string{"GEMINI_KEYS": "a,b", "groq_keys": `["c"]`, "HOST": "127.0.0.1"}, code: 0, out: []string{"environment is valid: 3 providers, 0 upstreams, 0 models, 0 warnings"}},
		"too many args":  {args: []string{"a", "b"}, code: 2, err: []string{"unexpected argument b"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, tt.yaml)
			x.env = tt.env
			require.Equal(t, tt.code, x.run(t.Context(), append([]string{"check"}, tt.args...)...), x.errOut.String())
			for _, text := range tt.out {
				require.Contains(t, x.out.String(), text)
			}
			for _, text := range tt.err {
				require.Contains(t, x.errOut.String(), text)
			}
			require.NotContains(t, x.out.String()+x.errOut.String(), "a-secret")
		})
	}
}

// The example of automatic routing is sound.
func TestCheckOfTheExample(t *testing.T) {
	t.Parallel()
	example, err := filepath.Abs("../../../../deploy/auto.example.yaml")
	require.NoError(t, err)
	x := newTerminal(t, "")
	x.env = map[string]string{"GEMINI_KEYS": "g1,g2", "GROQ_KEYS": "q1", "CEREBRAS_KEYS": "c1"}
	require.Equal(t, 0, x.run(t.Context(), "check", example), x.errOut.String())
	require.Contains(t, x.out.String(), "auto.example.yaml is valid: 4 providers, 0 upstreams, 0 models, 0 warnings")
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		code int
		out  string
		err  string
	}{
		"version":         {args: []string{"version"}, code: 0, out: "dev"},
		"help":            {args: []string{"--help"}, code: 0, out: "check"},
		"unknown command": {args: []string{"dance"}, code: 2, err: "dance"},
		"unknown flag":    {args: []string{"--dance"}, code: 2, err: "--dance"},
		"port is text":    {args: []string{"--port", "http"}, code: 2, err: "from 1 to 65535"},
		"port is 0":       {args: []string{"--port", "0"}, code: 2, err: "from 1 to 65535"},
		"port too large":  {args: []string{"--port=65536"}, code: 2, err: "from 1 to 65535"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, "")
			require.Equal(t, tt.code, x.run(t.Context(), tt.args...))
			require.Contains(t, x.out.String(), tt.out)
			require.Contains(t, x.errOut.String(), tt.err)
		})
	}
}

// the MCP server does not start where everybody could reach it without a token.
func TestMCPRefuses(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "web: {mcp_server: {listen: '0.0.0.0:8765'}}\n")
	require.Equal(t, 1, x.run(t.Context(), "mcp"))
	require.Contains(t, x.errOut.String(), "web.mcp_server.token is missing")
}

// a configuration with errors never starts, and every error is printed with its line.
func TestServeRefusesABrokenConfiguration(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "server: {port: 0}\nlog: {level: loud}\n")
	require.Equal(t, 1, x.run(t.Context()))
	require.Contains(t, x.errOut.String(), "config.yaml:1: server.port: ")
	require.Contains(t, x.errOut.String(), "config.yaml:2: log.level: ")
	require.NoDirExists(t, filepath.Join(x.dir, "data"))
}

func TestMock(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "")
	stop := x.start(t, "mock", "--listen", "127.0.0.1:"+strconv.Itoa(freeport.Port(t)), "--delay", "1ms")
	await.True(t, func() bool { return bytes.Contains([]byte(x.out.String()), []byte("listens on http://127.0.0.1:")) })
	require.Equal(t, 0, stop(), x.errOut.String())
}

func TestMockAddressInUse(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, ln.Close()) }()
	x := newTerminal(t, "")
	require.Equal(t, 1, x.run(t.Context(), "mock", "--listen", ln.Addr().String()))
	require.Contains(t, x.errOut.String(), ln.Addr().String())
}

// awaitOutput gives the first match in what a command printed.
func (x *terminal) awaitOutput(t *testing.T, pattern string) (match string) {
	t.Helper()
	re := regexp.MustCompile(pattern)
	await.True(t, func() bool {
		match = re.FindString(x.out.String())
		return match != ""
	}, x.errOut.String())
	return match
}

// call makes a request to a gateway, POST when there is a body.
func call(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode, string(data)
}

// the environment alone is enough for a start.
func TestServeWithoutAFile(t *testing.T) {
	t.Parallel()
	ollama := fakellm.Start(t)
	ollama.Handle(fakellm.Talk("from ollama"))
	port := freeport.Port(t)
	x := newTerminal(t, "")
	x.env = map[string]string{
		"OLLAMA_BASE_URL": ollama.URL(), // the path is completed
		"HOST":            "127.0.0.1", "PORT": strconv.Itoa(port), "DATA_DIR": filepath.Join(x.dir, "data"),
	}
	stop := x.start(t)
	x.awaitOutput(t, "server: bind")
	root := "http://127.0.0.1:" + strconv.Itoa(port)
	await.True(t, func() bool { status, _ := call(t, root+"/readyz", ""); return status == http.StatusOK })
	status, text := call(t, root+"/healthz", "")
	require.Equal(t, http.StatusOK, status, text)
	status, text = call(t, root+"/v1/models", "")
	require.Equal(t, http.StatusOK, status, text)
	for _, id := range []string{"auto", "LOCAL-AGENT/OLLAMA/auto"} {
		require.Contains(t, text, `"id":"`+id+`"`)
	}
	for _, model := range []string{"auto", "gpt-4o", "ollama/any"} {
		status, text = call(t, root+"/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"Hello"}]}`)
		require.Equal(t, http.StatusOK, status, text)
		require.Contains(t, text, "from ollama")
		require.Contains(t, text, `"gateway_provider":"LOCAL-AGENT"`)
	}
	require.Equal(t, 0, stop(), x.errOut.String())
	require.DirExists(t, filepath.Join(x.dir, "data", "nats"))
}

// The demo works as it says: with the address it prints, it answers in a stream.
func TestDemo(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "")
	stop := x.start(t, "demo", "--port", strconv.Itoa(freeport.Port(t)))
	url := x.awaitOutput(t, `http://\S+/v1/chat/completions`)
	for _, model := range []string{"demo", "demo-failover", "auto"} {
		status, answer := call(t, url, `{"model": "`+model+`", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, `"content":"Hello "`)
		require.True(t, strings.HasSuffix(answer, "data: [DONE]\n\n"))
	}
	root := strings.TrimSuffix(url, "/chat/completions")
	status, answer := call(t, root+"/embeddings", `{"model": "demo-embedding", "input": ["one", "two"]}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Len(t, gjson.Get(answer, "data.#.embedding").Array(), 2)
	agentInDemo(t, url)
	commandsOfDemo(t, x.out.String())
	config := regexp.MustCompile(`configuration is (\S+)\. Open`).FindStringSubmatch(x.out.String())
	require.Len(t, config, 2)
	require.FileExists(t, config[1])
	require.Equal(t, 0, stop(), x.errOut.String())
	require.NoFileExists(t, config[1], "nothing is left behind")
}

var (
	continued = regexp.MustCompile(`\\\n\s*`)
	curl      = regexp.MustCompile(`(?m)^  curl .*?(http://\S+)(.*) -d '(.*)'$`)
	header    = regexp.MustCompile(`-H '([^:]+): ([^']*)'`)
)

// the commands that the demo prints work as they stand, in their order: a stream, a provider that breaks, and a question for the web that the other one
// answers.
func commandsOfDemo(t *testing.T, printed string) {
	t.Helper()
	var answers []string
	for _, m := range curl.FindAllStringSubmatch(continued.ReplaceAllString(printed, ""), -1) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, m[1], strings.NewReader(m[3]))
		require.NoError(t, err)
		for _, h := range header.FindAllStringSubmatch(m[2], -1) {
			req.Header.Set(h[1], h[2])
		}
		resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		require.NoError(t, err)
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusOK, resp.StatusCode, "%s: %s", m[0], data)
		answers = append(answers, resp.Header.Get("X-Gateway-Provider")+" "+string(data))
	}
	require.Len(t, answers, 3, printed)
	require.Contains(t, answers[0], "data: [DONE]")
	require.Contains(t, answers[1], `{"id":"alpha","state":"broken"`)
	require.Contains(t, answers[2], "LED of 90 watts")
	require.True(t, strings.HasPrefix(answers[2], "beta "), answers[2])
}

// agentInDemo does what the documentation of the mock shows: tools called by name, their results, an answer in a format.
func agentInDemo(t *testing.T, url string) {
	t.Helper()
	const (
		tools  = `"tools": [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}]`
		format = `"response_format": {"type": "json_schema", "json_schema": {"name": "report", "schema": {"type": "object", "properties": {"degrees": {"type": "integer"}}, "required": ["degrees"], "additionalProperties": false}}}`
		asked  = `{"role": "user", "content": "call get_weather {\"city\": \"Rome\"}"}`
	)
	for _, stream := range []string{"false", "true"} {
		status, answer := call(t, url, `{"model": "demo", "stream": `+stream+`, "messages": [`+asked+`], `+tools+`}`)
		require.Equal(t, http.StatusOK, status, answer)
		require.Contains(t, answer, `"name":"get_weather"`)
		require.Contains(t, answer, `"finish_reason":"tool_calls"`)
	}
	status, answer := call(t, url, `{"model": "demo", "messages": [`+asked+`], `+tools+`}`)
	require.Equal(t, http.StatusOK, status, answer)
	made := gjson.Get(answer, "choices.0.message")
	require.JSONEq(t, `{"city": "Rome"}`, made.Get("tool_calls.0.function.arguments").Str)
	result := `{"role": "tool", "tool_call_id": "` + made.Get("tool_calls.0.id").Str + `", "content": "21 degrees"}`
	status, answer = call(t, url, `{"model": "demo", "messages": [`+asked+`,`+made.Raw+`,`+result+`], `+tools+`}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, "The tool get_weather answered: 21 degrees", gjson.Get(answer, "choices.0.message.content").Str)
	status, answer = call(t, url, `{"model": "demo", "messages": [`+asked+`,`+made.Raw+`,`+result+`], `+tools+`, `+format+`}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.JSONEq(t, `{"degrees": 1}`, gjson.Get(answer, "choices.0.message.content").Str)
	status, answer = call(t, url, `{"model": "demo", "messages": [{"role": "user", "content": "fail 400"}]}`)
	require.Equal(t, http.StatusBadRequest, status, answer)
}

// The binary decides whether there is something to serve, and says what it does.
func TestServeOrDemo(t *testing.T) {
	t.Parallel()
	x := newTerminal(t, "")
	stop := x.start(t, "serve", "--or-demo", "--port", strconv.Itoa(freeport.Port(t)))
	x.awaitOutput(t, "Nothing is configured, so this is the demo")
	url := x.awaitOutput(t, `http://\S+/v1/chat/completions`)
	status, answer := call(t, url, `{"model": "auto", "messages": [{"role": "user", "content": "Hello"}]}`)
	require.Equal(t, http.StatusOK, status, answer)
	require.Equal(t, 0, stop(), x.errOut.String())

	x = newTerminal(t, "")
	x.env = map[string]string{"openai_api_key": "k", "host": "127.0.0.1", "PORT": strconv.Itoa(freeport.Port(t)), "DATA_DIR": filepath.Join(x.dir, "data")}
	stop = x.start(t, "serve", "--or-demo")
	x.awaitOutput(t, "server: bind")
	require.NotContains(t, x.out.String(), "demo")
	require.Equal(t, 0, stop(), x.errOut.String())
}
