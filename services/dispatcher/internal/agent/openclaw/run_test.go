package openclaw

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/openai"
)

// The test binary plays the program "openclaw": one variable says how, another where it notes how it was called.
const (
	roleEnv = "OPENCLAW_TEST_ROLE"
	noteEnv = "OPENCLAW_TEST_NOTE"
)

// note is how the program was called.
type note struct {
	Args    []string
	Message string
	Path    string
}

func playProgram() bool {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false
	}
	if role == "hang" {
		<-time.After(time.Minute)
	}
	n := note{Args: os.Args[1:]}
	for _, arg := range n.Args {
		if path, ok := strings.CutPrefix(arg, "--message-file="); ok {
			message, _ := os.ReadFile(path)
			n.Message, n.Path = string(message), path
		}
	}
	data, _ := json.Marshal(n)
	name := os.Getenv(noteEnv)
	if role == "alone" {
		defer os.Remove(name) //nolint:errcheck // the next one tells
		if _, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL, 0o600); err != nil {
			os.Exit(1) // another is at work
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a program at work
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString(outputs[role])
	if role == "failure" || role == "silent" {
		os.Exit(1)
	}
	return true
}

// outputs are what the program prints.
var outputs = map[string]string{
	"local": localOutput, "alone": localOutput, "gateway": gatewayOutput, "failure": failureOutput, "silent": "",
}

const (
	localOutput = `{
  "payloads": [{"text": "The lamp", "mediaUrl": null}, {"text": "is green.", "mediaUrl": null}],
  "meta": {
    "durationMs": 38965, "aborted": false, "stopReason": "stop",
    "agentMeta": {
      "sessionId": "s1", "provider": "vendor", "model": "xi-1",
      "usage": {"input": 11, "output": 4, "cacheRead": 3, "cacheWrite": 2, "total": 20, "cost": {"total": 0}}
    }
  }
}
`
	gatewayOutput = `{"runId":"r1","status":"ok","summary":"completed","result":` + localOutput + `}`
	failureOutput = `{"ok":false,"runId":"r1","origin":"gateway","error":{"type":"cli_error",
		"message":"⚠️ vendor/xi-1 request failed (authentication failed, HTTP 401). Re-authenticate the provider and try again."}}`
)

// playing is an agent whose program plays a role, and the place of its note.
func playing(t *testing.T, role string) (a *Agent, path string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "note")
	return newAgent(t, Config{Program: self, Env: []string{roleEnv + "=" + role, noteEnv + "=" + path}}), path
}

func readNote(t *testing.T, path string) (n note) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &n))
	return n
}

const conversation = `[{"role":"system","content":"Be brief."},{"role":"user","content":"--help"},{"role":"assistant","content":"What for?"},
	{"role":"user","content":"Which lamp?"}]`

// the program gets the whole conversation, in a file.
func TestProgramAnswersWhereNoGatewayDoes(t *testing.T) {
	t.Parallel()
	a, path := playing(t, "local")
	call := request(nowhere(t), "")
	call.Body = []byte(`{"model":"vendor/xi-1","messages":` + conversation + `}`)
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	got := readAll(t, resp)
	require.Equal(t, http.StatusOK, resp.Status)
	require.Equal(t, "The lamp\n\nis green.", gjson.Get(got, "choices.0.message.content").Str)
	require.Equal(t, "vendor/xi-1", gjson.Get(got, "model").Str)
	require.JSONEq(t, `{"prompt_tokens":16,"completion_tokens":4,"total_tokens":20,"prompt_tokens_details":{"cached_tokens":3},
		"completion_tokens_details":{"reasoning_tokens":0}}`, gjson.Get(got, "usage").Raw)

	n := readNote(t, path)
	require.Len(t, n.Args, 8)
	require.Equal(t, []string{"agent", "--agent=main"}, n.Args[:2])
	require.Regexp(t, `^--session-id=[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, n.Args[2])
	require.Equal(t, []string{"--json", "--timeout=20", "--model=vendor/xi-1", "--local"}, n.Args[4:])
	for _, words := range []string{"Be brief.", "--help", "What for?", "Which lamp?"} {
		require.Contains(t, n.Message, words)
		require.NotContains(t, strings.Join(n.Args, " "), words)
	}
	require.NoFileExists(t, n.Path)
}

// The endpoint is off by default; the program reaches the gateway in its own way then, and must not work beside it.
func TestProgramReachesAGatewayWithoutEndpoint(t *testing.T) {
	t.Parallel()
	a, path := playing(t, "gateway")
	url, _ := gateway(t, 404, "text/plain", []byte("Not Found"))
	call := request(url, "openclaw/research")
	call.Stream = true
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, dialect.Events, resp.Kind)
	got := readAll(t, resp)
	require.Contains(t, got, `{"content":"The lamp\n\nis green."}`)
	require.True(t, strings.HasSuffix(got, openai.Done))
	n := readNote(t, path)
	require.Contains(t, n.Args, "--agent=research")
	require.NotContains(t, n.Args, "--local")

	// A model that is missing is no reason.
	known, _ := gateway(t, 404, "application/json", []byte(`{"error":{"message":"no","type":"not_found"}}`))
	require.NoError(t, os.Remove(path))
	resp, err = a.Chat(t.Context(), request(known, ""))
	require.NoError(t, err)
	require.Equal(t, 404, resp.Status)
	resp.Close()
	require.NoFileExists(t, path)
}

func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]classify.Class{"failure": classify.Auth, "silent": classify.Upstream} {
		a, _ := playing(t, role)
		resp, err := a.Chat(t.Context(), request("", ""))
		require.NoError(t, err)
		text := readAll(t, resp)
		require.Equal(t, want, classify.Of(classify.Answer{Status: resp.Status, Body: []byte(text)}).Class, text)
	}
}

// Two programs that do without a gateway would fight for the same files.
func TestOneProgramAtATimeWithoutGateway(t *testing.T) {
	t.Parallel()
	a, _ := playing(t, "alone")
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			resp, err := a.Chat(t.Context(), request("", ""))
			if err == nil {
				resp.Close()
				err = map[bool]error{false: errors.New("two at a time")}[resp.Status == http.StatusOK]
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

func TestHangingProgramEndsWithTheCall(t *testing.T) {
	t.Parallel()
	a, _ := playing(t, "hang")
	left := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(left) })
	var calls sync.WaitGroup
	for range 2 { // one hangs, the other waits for it
		calls.Go(func() {
			if _, err := a.Chat(ctx, request("", "")); !errors.Is(err, left) {
				t.Error(err)
			}
		})
	}
	calls.Wait()
}

// What is wrong then is the gateway.
func TestProgramThatCanNotBeAsked(t *testing.T) {
	t.Parallel()
	a, path := playing(t, "local")
	missing := newAgent(t, Config{Program: "no-such-program-anywhere"})
	image := request(nowhere(t), "")
	image.Body = []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`)
	tool := request(nowhere(t), "")
	tool.Body = []byte(`{"tool_choice":"required","messages":[]}`)
	for _, c := range []struct {
		*Agent
		call upstream.Call
	}{{missing, request(nowhere(t), "")}, {a, image}, {a, tool}, {newAgent(t, Config{}), request(nowhere(t), "")}} {
		_, err := c.Chat(t.Context(), c.call)
		require.Equal(t, "connection refused", classify.Transport(t.Context(), err).Reason)
	}
	off, _ := gateway(t, 404, "text/plain", []byte("Not Found"))
	resp, err := missing.Chat(t.Context(), request(off, ""))
	require.NoError(t, err)
	require.Equal(t, "Not Found", readAll(t, resp))
	require.NoFileExists(t, path)
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	for output, status := range map[string]int{
		``:                       502,
		`{`:                      502,
		`[]`:                     502,
		`{"payloads":[]}`:        502,
		`{"status":"timeout"}`:   502,
		`{"status":"in_flight"}`: 502,
		`{"payloads":[{"text":"x"}],"meta":{"aborted":true}}`:                            502,
		`{"payloads":[{"text":"x"}],"meta":{"error":{"message":"HTTP 429 too many"}}}`:   429,
		`{"payloads":[{"text":"limit, HTTP 503","isError":true}]}`:                       503,
		`{"ok":false,"error":{"type":"cli_error","message":"HTTP 200"}}`:                 502,
		`{"payloads":[{"text":"x"}],"meta":{"stopReason":"length","agentMeta":{"x":1}}}`: 0,
	} {
		answer, failure := readOutput([]byte(output))
		if status != 0 {
			require.NotNil(t, failure, output)
			require.Equal(t, status, failure.status, output)
			continue
		}
		require.Nil(t, failure, output)
		require.Equal(t, "length", answer.Finish)
	}
}

func FuzzOutput(f *testing.F) {
	for _, output := range outputs {
		f.Add([]byte(output))
	}
	f.Fuzz(func(t *testing.T, output []byte) {
		whole, failure := readOutput(output)
		if failure != nil {
			require.True(t, gjson.ValidBytes(failure.body()))
			require.GreaterOrEqual(t, failure.status, 400)
			return
		}
		require.True(t, gjson.ValidBytes(answertest.Filled(func(out *answer.Chunk, _ []byte) bool {
			whole.Fill(out)
			return true
		}, nil)))
	})
}
