package binaries

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/fakellm"
	"hydrallm/shared/testkit/freeport"
	"hydrallm/shared/testkit/processtest"
)

// ollamaTags is the native list of an Ollama server with one model.
const ollamaTags = `{"models":[{"name":"qwen3:8b","details":{"context_length":40960},"capabilities":["completion","tools"]}]}`

// the key of Groq and the address of Ollama in the environment are all that automatic routing needs. Groq answers, and
// Ollama while Groq has nothing left; both can be asked by name. The data is where the gateway was started.
func TestGroqAndOllamaFromTheEnvironment(t *testing.T) {
	t.Parallel()
	groq, ollama := fakellm.Start(t), fakellm.Start(t)
	groq.Handle(fakellm.Talk("from groq"))
	groq.Offer("openai/gpt-oss-120b")
	ollama.Handle(fakellm.Talk("from ollama"))
	ollama.Page("/api/tags", ollamaTags)
	dir, addr := t.TempDir(), freeport.Addr(t)
	w := processtest.RunAlone(t, dir, processtest.AllInOne(t), "HOST=127.0.0.1", "PORT="+portOf(t, addr),
		"GROQ_API_KEY=gsk_of_the_user", "GROQ_BASE_URL="+groq.URL()+"/v1", "OLLAMA_BASE_URL="+ollama.URL())
	w.AwaitReady(t, addr)
	c := client{base: "http://" + addr + "/v1"}
	c.awaitListed(t, "groq/openai/gpt-oss-120b")
	c.awaitListed(t, "LOCAL-AGENT/OLLAMA/qwen3:8b")

	for _, step := range []struct {
		name, model      string
		provider, answer string
		broken           bool // Groq has nothing left
	}{
		{name: "the gateway chooses", model: "auto", provider: "groq", answer: "from groq"},
		{name: "no model at all", model: "", provider: "groq", answer: "from groq"},
		{name: "the provider is named", model: "groq/auto", provider: "groq", answer: "from groq"},
		{name: "the model is named", model: "groq/openai/gpt-oss-120b", provider: "groq", answer: "from groq"},
		{name: "the local model is named", model: "LOCAL-AGENT/OLLAMA/qwen3:8b", provider: "LOCAL-AGENT", answer: "from ollama"},
		{name: "Groq is out of quota", model: "auto", provider: "LOCAL-AGENT", answer: "from ollama", broken: true},
	} {
		if step.broken {
			groq.Handle(func(fakellm.Request) fakellm.Answer { return fakellm.Error(http.StatusTooManyRequests, "slow down") })
		}
		got := c.ask(t, step.model)
		require.Equal(t, http.StatusOK, got.status, "%s: %s", step.name, got.body)
		require.Contains(t, got.body, step.answer, step.name)
		require.Equal(t, step.provider, got.header.Get("X-Gateway-Provider"), step.name)
	}
	for _, r := range groq.Requests() {
		require.Equal(t, "gsk_of_the_user", r.Key())
		require.Equal(t, "openai/gpt-oss-120b", r.Model())
	}
	require.NotContains(t, w.Log.String(), "gsk_of_the_user")
	require.FileExists(t, filepath.Join(dir, "data", "hydrallm.db"))
}

// what is missing is said, with the names of the variables, and whoever has only a local Ollama needs none.
func TestNothingInTheEnvironment(t *testing.T) {
	t.Parallel()
	dir, addr := t.TempDir(), freeport.Addr(t)
	w := processtest.RunAlone(t, dir, processtest.AllInOne(t), "HOST=127.0.0.1", "PORT="+portOf(t, addr))
	w.AwaitReady(t, addr)
	for _, want := range []string{"GEMINI_API_KEY", "GROQ_API_KEY", "OLLAMA_BASE_URL", "config.yaml", "hydrallm demo"} {
		require.Contains(t, w.Log.String(), want)
	}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "it leaves its data, and nothing else")
}
