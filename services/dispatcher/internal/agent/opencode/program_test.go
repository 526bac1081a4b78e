package opencode

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/freeport"
)

// The test binary plays the program "opencode": one variable says how, another where it notes how it was called.
const (
	roleEnv = "OPENCODE_TEST_ROLE"
	noteEnv = "OPENCODE_TEST_NOTE"
)

// run is how the program was called.
type run struct {
	Args, Env []string
	Input     string
	Dir       string
	Files     map[string]string
}

func playProgram() bool {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false
	}
	if role == "hang" {
		<-time.After(time.Minute)
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	r := run{Args: os.Args[1:], Env: os.Environ(), Input: string(input), Files: map[string]string{}}
	r.Dir, _ = os.Getwd()
	for _, arg := range r.Args {
		if path, ok := strings.CutPrefix(arg, "--file="); ok {
			content, _ := os.ReadFile(path)
			r.Files[filepath.Base(path)] = string(content)
		}
	}
	note, _ := json.Marshal(r)
	if err := os.WriteFile(os.Getenv(noteEnv), note, 0o600); err != nil {
		panic(err)
	}
	outputs := map[string]string{"answer": printed, "silent": "", "failure": printedFailures}
	_, _ = os.Stdout.WriteString(outputs[role])
	if role == "failure" {
		os.Exit(1)
	}
	return true
}

// What "opencode run --format json" prints.
const (
	printed = `{"type":"step_start","timestamp":1,"sessionID":"ses_1","part":{"id":"prt_1","messageID":"msg_1","type":"step-start"}}
a line for people
{"type":"text","timestamp":2,"sessionID":"ses_1","part":{"id":"prt_2","messageID":"msg_1","type":"text","text":"The lamp "}}
{"type":"text","timestamp":2,"sessionID":"ses_1","part":{"id":"prt_3","messageID":"msg_1","type":"text","text":"is green."}}
{"type":"step_finish","timestamp":3,"sessionID":"ses_1","part":{"id":"prt_4","reason":"stop","messageID":"msg_1","type":"step-finish","tokens":{"input":11,"output":4,"reasoning":1,"cache":{"write":0,"read":2}}}}
`
	printedFailures = `{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"UnknownError","data":{"message":"Model not found: vendor/xi-1."}}}
{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"UnknownError","data":{"message":"Unexpected server error.","ref":"err_1"}}}
`
)

// playing is an agent whose program plays a role, and the place of its note.
func playing(t *testing.T, role string) (a *Agent, note string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	note = filepath.Join(t.TempDir(), "note")
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	tmp := filepath.Dir(note)
	return New(Config{Program: self, Env: []string{roleEnv + "=" + role, noteEnv + "=" + note, "TMPDIR=" + tmp, "HOME=/home/me"}}, client), note
}

func readNote(t *testing.T, path string) (r run) {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// noServer is a request to a port where nobody listens.
func noServer(t *testing.T) upstream.Call {
	t.Helper()
	call := request(false)
	call.URL = "http://" + freeport.Addr(t)
	return call
}

// without a server the program answers; it gets the whole conversation, and none of it on the command line.
func TestProgramAnswersWhereNoServerDoes(t *testing.T) {
	t.Parallel()
	a, note := playing(t, "answer")
	call := noServer(t)
	call.Body = []byte(`{"model":"vendor/xi-1","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"--help"},
		{"role":"assistant","content":"What for?"},{"role":"user","content":[{"type":"text","text":"Which lamp?"},
		{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`)
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.Status)
	got := readAll(t, resp)
	require.Equal(t, "The lamp is green.", gjson.Get(got, "choices.0.message.content").Str)
	require.EqualValues(t, 18, gjson.Get(got, "usage.total_tokens").Int())
	require.Equal(t, "vendor/xi-1", gjson.Get(got, "model").Str)

	r := readNote(t, note)
	require.Len(t, r.Args, 5)
	require.Equal(t, []string{"run", "--format=json", "--title=gateway", "--model=vendor/xi-1"}, r.Args[:4])
	require.Equal(t, map[string]string{"attachment-1.png": "hi"}, r.Files)
	for _, words := range []string{"Be brief.", "--help", "What for?", "Which lamp?"} {
		require.Contains(t, r.Input, words)
		require.NotContains(t, strings.Join(r.Args, " "), words)
	}
	require.Contains(t, r.Env, `OPENCODE_PERMISSION={"*":"deny"}`)
	require.Contains(t, r.Env, "HOME=/home/me")
	require.False(t, slices.ContainsFunc(r.Env, func(v string) bool { return strings.HasPrefix(v, "PATH=") }), "only what the agent was given")
	require.NoDirExists(t, filepath.Dir(r.Dir), "nothing stays")
}

func TestProgramAnswersStreams(t *testing.T) {
	t.Parallel()
	a, _ := playing(t, "answer")
	call := request(true)
	call.URL = "" // no server at all
	resp, err := a.Chat(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, dialect.Events, resp.Kind)
	got := collect(t, readAll(t, resp))
	require.Equal(t, "The lamp is green.", gjson.Get(got, "choices.0.message.content").Str)
	require.EqualValues(t, 18, gjson.Get(got, "usage.total_tokens").Int())
}

func TestProgramsThatFail(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]classify.Class{"failure": classify.Model, "silent": classify.Upstream} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			a, _ := playing(t, role)
			resp, err := a.Chat(t.Context(), noServer(t))
			require.NoError(t, err)
			require.Equal(t, want, judge(t, resp).Class)
		})
	}
}

func TestHangingProgramEndsWithTheCall(t *testing.T) {
	t.Parallel()
	a, _ := playing(t, "hang")
	call := noServer(t)
	call.HeadersTimeout = 300 * time.Millisecond
	_, err := a.Chat(t.Context(), call)
	require.ErrorIs(t, err, classify.ErrHeaderTimeout)

	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(errLeft) })
	_, err = a.Chat(ctx, noServer(t))
	require.ErrorIs(t, err, errLeft)
}

// What is wrong then is that no server was reached.
func TestMissingProgram(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "no-such-program-anywhere"} {
		a, _ := playing(t, "answer")
		a.cfg.Program = name
		_, err := a.Chat(t.Context(), noServer(t))
		require.Equal(t, "connection refused", classify.Transport(t.Context(), err).Reason)
	}
	a := New(Config{}, nil)
	call := request(false)
	call.URL = ""
	_, err := a.Chat(t.Context(), call)
	require.ErrorIs(t, err, program.ErrMissing)
}

// A server that was reached but then failed may have done half the work: the program is not asked as well.
func TestProgramIsNotASecondChance(t *testing.T) {
	t.Parallel()
	a, note := playing(t, "answer")
	for _, status := range []int{401, 500} {
		call := request(false)
		call.URL = listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, status, "") }))
		resp, err := a.Chat(t.Context(), call)
		require.NoError(t, err)
		require.Equal(t, status, resp.Status)
		resp.Close()
	}
	require.NoFileExists(t, note)
}
