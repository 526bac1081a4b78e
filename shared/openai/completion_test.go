package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai/rawjson"
)

// a prompt is what the user says; everything else that Chat Completions knows keeps its bytes and its order.
func TestScanCompletion(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"m","prompt":"h\u00e9","max_tokens":8, "temperature":0.250,"stop":["END"],"x":{"prompt":1}}`: `{"model":"m","messages":[{"role":"user","content":"h\u00e9"}],"max_tokens":8, "temperature":0.250,"stop":["END"],"x":{"prompt":1}}`,
		`{"prompt":["only one"],"model":"m"}`:                                                     `{"messages":[{"role":"user","content":"only one"}],"model":"m"}`,
		`{"model":"m","prompt":"a","suffix":null,"echo":false,"best_of":1,"logprobs":null,"n":2}`: `{"model":"m","messages":[{"role":"user","content":"a"}],"n":2}`,
		`{"suffix":"","prompt":"a","best_of":2,"n":2,"logprobs":false}`:                           `{"messages":[{"role":"user","content":"a"}],"n":2}`,
		`{"prompt":"a","logprobs":0}`:                                                             `{"messages":[{"role":"user","content":"a"}],"logprobs":true}`,
		`{"prompt":"a","logprobs":3,"stream":true}`:                                               `{"messages":[{"role":"user","content":"a"}],"stream":true,"logprobs":true,"top_logprobs":3}`,
		`{"prompt":"a","messages":[{"role":"user"}],"n":1}`:                                       `{"n":1,"messages":[{"role":"user"}]}`,
		`{"messages":[{"role":"user","content":"b"}],"n":1 }`:                                     `{"n":1,"messages":[{"role":"user","content":"b"}] }`,
	} {
		r, err := ScanCompletion([]byte(body))
		require.NoError(t, err, body)
		require.Nil(t, r.Demand, body)
		require.Equal(t, want, string(r.Chat()), body)
	}
	r, err := ScanCompletion([]byte(`{"model":"m","prompt":"` + strings.Repeat("a", 40) + `","max_tokens":8,"stream":true,"stream_options":{"include_usage":true},"session_id":"s"}`))
	require.NoError(t, err)
	require.Equal(t, int64(18), r.Tokens)
	require.True(t, r.Stream && r.IncludeUsage && r.UserText)
	require.Equal(t, "s", r.SessionID)
}

// what a chat model can't do is known, with the member that demands it, and goes as it is where it can be done.
func TestCompletionDemands(t *testing.T) {
	t.Parallel()
	for body, param := range map[string]string{
		`{"prompt":"def f(","suffix":"return x"}`: "suffix", `{"prompt":"","suffix":"x"}`: "suffix", `{"prompt":"a","echo":true}`: "echo",
		`{"prompt":"a","best_of":3}`: "best_of", `{"prompt":"a","best_of":3,"n":2}`: "best_of", `{"prompt":["a","b"]}`: "prompt", `{"prompt":[1,2]}`: "prompt",
		`{"prompt":[[1],[2]]}`: "prompt", `{"prompt":" "}`: "prompt",
	} {
		r, err := ScanCompletion([]byte(body))
		require.NoError(t, err, body)
		require.NotNil(t, r.Demand, body)
		require.Equal(t, param, r.Demand.Param, body)
		require.Contains(t, r.Demand.Message, "completions: native")
		require.Equal(t, body, string(r.AppendUpstream(nil, Rewrite{})))
	}
	r, err := ScanCompletion([]byte(`{"session_id":"s","model":"m","prompt":[1, 2],"echo":true}`))
	require.NoError(t, err)
	require.Equal(t, `{"model":"up","prompt":[1, 2],"echo":true}`, string(r.AppendUpstream(nil, Rewrite{Model: "up"})))
}

func TestScanCompletionRefuses(t *testing.T) {
	t.Parallel()
	many := `{"prompt":["a"` + strings.Repeat(`,"a"`, maxPrompts) + `]}`
	for body, param := range map[string]string{
		``: "", `{broken`: "", `[]`: "", `{}`: "prompt", `{"model":"m"}`: "prompt", `{"prompt":null}`: "prompt", `{"prompt":[]}`: "prompt", `{"prompt":5}`: "prompt",
		`{"prompt":{}}`: "prompt", `{"prompt":["a",1]}`: "prompt", `{"prompt":[null]}`: "prompt", many: "prompt", `{"prompt":"a","prompt":"b"}`: "prompt",
		`{"prompt":"a","suffix":5}`: "suffix", `{"prompt":"a","suffix":"a","suffix":""}`: "suffix", `{"prompt":"a","echo":"x"}`: "echo",
		`{"prompt":"a","logprobs":"x"}`: "logprobs", `{"prompt":"a","logprobs":-1}`: "logprobs", `{"prompt":"a","logprobs":1.5}`: "logprobs",
		`{"prompt":"a","Suffix":"b"}`: "Suffix", `{"prompt":"a","PROMPT":"b"}`: "PROMPT", `{"prompt":"a","messages":5}`: "messages", `{"prompt":"a","stream":1}`: "stream",
	} {
		_, err := ScanCompletion([]byte(body))
		bad, ok := errors.AsType[*RequestError](err)
		require.True(t, ok, body)
		require.Equal(t, param, bad.Param, body)
	}
}

// Whatever is taken, what a chat upstream gets is a request that the gateway itself reads, with the same question.
func FuzzScanCompletion(f *testing.F) {
	for _, seed := range []string{
		`{"model":"m","prompt":"hi","n":2,"best_of":2,"logprobs":5}`, `{"prompt":["a"],"suffix":null,"echo":false}`, `{"prompt":[[1],[2]]}`, `{"prompt":"a","suffix":"b"}`,
		`{"messages":[{"role":"user","content":"a"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ScanCompletion(body)
		if err != nil {
			_, ok := errors.AsType[*RequestError](err)
			require.True(t, ok)
			return
		}
		var native map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(r.AppendUpstream(nil, Rewrite{Model: "up"}), &native))
		require.Equal(t, `"up"`, string(native["model"]))
		if r.Demand != nil || !r.History.IsZero() {
			return
		}
		hub, err := ScanRequest(r.Chat())
		require.NoError(t, err, "%s", r.Chat())
		array := hub.Messages.Of(hub.Body())
		require.Equal(t, rawjson.Text(r.Prompts[0].Of(body)), rawjson.Text(rawjson.Get(array[1:len(array)-1], "content")))
		require.Equal(t, r.Model, hub.Model)
		require.Equal(t, r.Stream, hub.Stream)
	})
}
