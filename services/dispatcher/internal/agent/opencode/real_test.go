package opencode

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/program"
	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/machine"
)

// The release of OpenCode that these tests run, and the time that each step with it may take.
const (
	realVersion  = "1.18.33"
	installLimit = 6 * time.Minute // once on a machine: it is kept in the user's cache
	realLimit    = 3 * time.Minute
)

// realProgram gives the program, which npm installs if it was not yet.
func realProgram(t *testing.T) string {
	t.Helper()
	path, err := installOnce()
	if err != nil {
		machine.Missing(t, "OpenCode", err)
	}
	return path
}

var installOnce = sync.OnceValues(install)

func install() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), installLimit)
	defer cancel()
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	base := filepath.Join(cache, "hydrallm-test")
	dir := filepath.Join(base, "opencode-"+realVersion)
	if path, err := find(ctx, dir); err == nil {
		return path, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(base, 0o755); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(base, "new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh) //nolint:errcheck // what stays is in a cache
	if err := download(ctx, npm, fresh); err != nil {
		return "", err
	}
	if err := keepOne(ctx, fresh); err != nil {
		return "", err
	}
	_ = os.RemoveAll(dir) // one that did not work
	if err := os.Rename(fresh, dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return find(ctx, dir)
}

// downloads is how often npm is asked: registries have bad moments.
const downloads = 3

func download(ctx context.Context, npm, dir string) (err error) {
	for range downloads {
		cmd := exec.CommandContext(ctx, npm, "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts", "opencode-ai@"+realVersion)
		var out []byte
		if out, err = cmd.CombinedOutput(); err == nil {
			return nil
		}
		line, _, _ := bytes.Cut(out, []byte("\n"))
		err = fmt.Errorf("npm: %w: %s", err, line)
	}
	return err
}

// keepOne removes the builds of an installation that are not used, which are large.
func keepOne(ctx context.Context, dir string) error {
	used, err := find(ctx, dir)
	if err != nil {
		return err
	}
	for _, path := range builds(dir) {
		if path != used {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// builds gives the programs of an installation.
func builds(dir string) []string {
	paths, _ := filepath.Glob(filepath.Join(dir, "node_modules", "opencode-*", "bin", "opencode")) // the pattern is sound
	return paths
}

// find gives the program of an installation: npm takes all builds for this system, and not all of them run on every processor.
func find(ctx context.Context, dir string) (string, error) {
	for _, path := range builds(dir) {
		out, err := exec.CommandContext(ctx, path, "--version").Output()
		if err == nil && strings.TrimSpace(string(out)) == realVersion {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program in %s", dir)
}

// realEnv is a home for the program with a configuration whose only provider is the fake.
func realEnv(t *testing.T, fake *fakellm.Server) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	models := map[string]any{}
	for _, m := range []string{"lamp", "slow", "busy", "locked", "small"} {
		models[m] = map[string]any{"name": m, "reasoning": true, "limit": map[string]any{"context": 8000, "output": 1000}}
	}
	config, err := json.Marshal(map[string]any{
		"model": "fake/lamp", "small_model": "fake/lamp", "enabled_providers": []string{"fake"}, "share": "disabled",
		"provider": map[string]any{"fake": map[string]any{
			"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": fake.URL() + "/v1", "apiKey": "k"}, "models": models,
		}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600))
	work := filepath.Join(dir, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	return work, append(program.Environment(os.Environ()),
		"HOME="+dir, "TMPDIR="+work, "XDG_DATA_HOME="+dir+"/data", "XDG_CONFIG_HOME="+dir+"/config", "XDG_STATE_HOME="+dir+"/state", "XDG_CACHE_HOME="+dir+"/cache",
		"OPENCODE_CONFIG="+dir+"/config.json", "OPENCODE_SERVER_PASSWORD=secret", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1")
}

// guard runs the server until its own standard input closes, so that the server also ends when the test process is killed.
const guard = `"$@" </dev/null & read -r _; kill -KILL $!; wait`

// startReal runs a server until the end of the test and gives its address.
func startReal(t *testing.T, path, dir string, env []string) (url string) {
	t.Helper()
	_, port, _ := strings.Cut(freeport.Addr(t), ":")
	cmd := exec.Command("/bin/sh", "-c", guard, "opencode", path, "serve", "--hostname=127.0.0.1", "--port="+port)
	cmd.Dir, cmd.Env = dir, env
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	end := sync.OnceValue(in.Close)
	t.Cleanup(func() {
		require.NoError(t, end())
		_, _ = io.Copy(io.Discard, out)
		require.NoError(t, cmd.Wait())
	})
	late := time.AfterFunc(realLimit, func() { _ = end() })
	defer late.Stop() // calls to a server that listens have limits of their own
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if _, url, found := strings.Cut(lines.Text(), "listening on "); found {
			return url
		}
	}
	t.Fatal("OpenCode does not listen")
	return ""
}

// speak is the provider behind OpenCode; the model says how it behaves.
func speak(r fakellm.Request) fakellm.Answer {
	delta := func(d map[string]any, finish any) map[string]any {
		return map[string]any{
			"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "fake",
			"choices": []any{map[string]any{"index": 0, "delta": d, "finish_reason": finish}},
		}
	}
	last := delta(map[string]any{}, "length")
	last["usage"] = map[string]any{
		"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
		"prompt_tokens_details": map[string]any{"cached_tokens": 5}, "completion_tokens_details": map[string]any{"reasoning_tokens": 4},
	}
	answer := fakellm.SSE(
		delta(map[string]any{"role": "assistant", "reasoning_content": "Look."}, nil),
		delta(map[string]any{"content": "The lamp "}, nil), delta(map[string]any{"content": "is green."}, nil), last, fakellm.Done)
	switch r.Model() {
	case "slow":
		return answer.First(2, fakellm.Hang)
	case "busy":
		return fakellm.Error(http.StatusTooManyRequests, "Rate limit reached, slow down")
	case "locked":
		return fakellm.JSON(http.StatusUnauthorized, map[string]any{"error": map[string]any{
			"message": "Incorrect API key provided", "type": "invalid_request_error", "code": "invalid_api_key",
		}})
	case "small":
		return fakellm.JSON(http.StatusBadRequest, map[string]any{"error": map[string]any{
			"message": "This model's maximum context length is 8192 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded",
		}})
	}
	return answer
}

// installed is an agent with a server of OpenCode, and the provider behind that.
type installed struct {
	*Agent

	url  string
	fake *fakellm.Server
}

func (r *installed) call(streaming bool, model, messages string) upstream.Call {
	return upstream.Call{
		URL: r.url, Key: "secret", Stream: streaming, HeadersTimeout: realLimit, RequestTimeout: realLimit, Header: http.Header{},
		Body: []byte(`{"model":"` + model + `","messages":` + messages + `}`),
	}
}

const conversation = `[{"role":"system","content":"Answer as a lighthouse keeper."},{"role":"user","content":"I have a lamp."},
	{"role":"assistant","content":"Which one?"},{"role":"user","content":"The one at the door. What colour is it?"}]`

// The real server, with a provider that needs no internet: what the fixtures claim holds.
func TestRealServer(t *testing.T) {
	t.Parallel()
	path := realProgram(t)
	fake := fakellm.Start(t)
	fake.Handle(speak)
	dir, env := realEnv(t, fake)
	client := upstream.New(upstream.Config{})
	t.Cleanup(client.Close)
	r := &installed{New(Config{}, client), startReal(t, path, dir, env), fake}
	t.Cleanup(r.Close)

	version, err := r.Health(t.Context(), r.call(false, "", `[]`))
	require.NoError(t, err)
	require.Equal(t, realVersion, version)

	r.testStream(t)
	r.testWhole(t)
	r.testFailures(t)
	r.testCancel(t)
	r.Close()
	require.Equal(t, "[]", r.sessions(t), "every session is gone")
}

func (r *installed) testStream(t *testing.T) {
	t.Helper()
	resp, err := r.Chat(t.Context(), r.call(true, "fake/slow", conversation))
	require.NoError(t, err)
	defer resp.Close()
	events := resp.Events(nil)
	text := ""
	for !strings.Contains(text, "The lamp") { // the provider has not said more yet, and never will
		c, err := events.Next()
		require.NoError(t, err)
		text += string(answer.Inner(c.Choices[0].Content)) + string(answer.Inner(c.Choices[0].ReasoningContent))
	}
	require.Equal(t, 1, r.fake.Active())
	require.Contains(t, text, "Look.")

	asked := string(r.fake.Requests()[0].Body)
	for _, words := range []string{"Answer as a lighthouse keeper.", "I have a lamp.", "Which one?", "The one at the door. What colour is it?"} {
		require.Contains(t, asked, words)
	}
	require.False(t, gjson.Get(asked, "tools.0").Exists(), "no tools")
}

func (r *installed) testWhole(t *testing.T) {
	t.Helper()
	for _, streaming := range []bool{false, true} {
		resp, err := r.Chat(t.Context(), r.call(streaming, "auto", `[{"role":"user","content":"Which lamp?"}]`))
		require.NoError(t, err)
		got := readAll(t, resp)
		require.Equal(t, http.StatusOK, resp.Status, got)
		if streaming {
			got = collect(t, got)
		}
		require.Equal(t, "The lamp is green.", gjson.Get(got, "choices.0.message.content").Str)
		require.Equal(t, "Look.", gjson.Get(got, "choices.0.message.reasoning_content").Str)
		require.Equal(t, "length", gjson.Get(got, "choices.0.finish_reason").Str)
		require.Equal(t, "fake/lamp", gjson.Get(got, "model").Str)
		require.JSONEq(t, `{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30,"prompt_tokens_details":{"cached_tokens":5},
			"completion_tokens_details":{"reasoning_tokens":4}}`, gjson.Get(got, "usage").Raw)
	}
}

func (r *installed) testFailures(t *testing.T) {
	t.Helper()
	for model, want := range map[string]classify.Class{
		"fake/busy": classify.Rate, "fake/locked": classify.Auth, "fake/small": classify.Size, "fake/none": classify.Model, "none/lamp": classify.Model,
	} {
		resp, err := r.Chat(t.Context(), r.call(true, model, `[{"role":"user","content":"Which lamp?"}]`))
		require.NoError(t, err)
		v := judge(t, resp)
		require.Equal(t, want, v.Class, "%s: %+v", model, v)
	}
	call := r.call(false, "fake/lamp", `[]`)
	call.Key = "wrong"
	resp, err := r.Chat(t.Context(), call)
	require.NoError(t, err)
	require.Equal(t, classify.Auth, judge(t, resp).Class)
}

func (r *installed) testCancel(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	resp, err := r.Chat(ctx, r.call(true, "fake/slow", conversation))
	require.NoError(t, err)
	cancel(errLeft)
	_, err = answertest.Body(resp)
	require.ErrorIs(t, err, errLeft)
	resp.Close()
	require.Eventually(t, func() bool { return r.fake.Active() == 0 }, realLimit, 10*time.Millisecond, "OpenCode gives its own call up")
}

func (r *installed) sessions(t *testing.T) string {
	t.Helper()
	a, err := newServer(r.client, r.call(false, "", `[]`), realLimit).get(t.Context(), "/session")
	require.NoError(t, err)
	return string(a.body)
}

// The program without a server.
func TestRealProgram(t *testing.T) {
	t.Parallel()
	path := realProgram(t)
	fake := fakellm.Start(t)
	fake.Handle(speak)
	_, env := realEnv(t, fake)
	r := &installed{New(Config{Program: path, Env: env}, nil), "", fake}
	resp, err := r.Chat(t.Context(), r.call(false, "fake/lamp", conversation))
	require.NoError(t, err)
	got := readAll(t, resp)
	require.Equal(t, "The lamp is green.", gjson.Get(got, "choices.0.message.content").Str, got)
	require.EqualValues(t, 30, gjson.Get(got, "usage.total_tokens").Int())
	require.Contains(t, string(fake.Requests()[0].Body), "The one at the door. What colour is it?")
	require.False(t, gjson.GetBytes(fake.Requests()[0].Body, "tools.0").Exists(), "no tools")
}
