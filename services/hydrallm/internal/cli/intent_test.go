package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
	"hydrallm/shared/testkit/freeport"
)

// withoutModel is a configuration whose embedding model can't be had.
const withoutModel = valid + "web: {intent: {embedding_url: \"http://127.0.0.1:1\"}}\n"

const sentences = "# label, tab, sentence\nweb\tplease look up the tide\n\nweb\twhat is the current tide at Busan\nno\texplain binary search\r\nno\tthanks\n"

//
func TestIntentCheck(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text string
		args []string
		code int
		out  []string
		err  string
	}{
		"figures": {
			text: sentences, args: []string{"--recall", "0.5"},
			out: []string{
				"2 sentences need the web, 2 do not\nno embeddings: ", "\nregex          1     0\ntrivial        0     1\n", "\nnone           1     1\n",
				"precision 1.000, recall 0.500\nmissed: what is the current tide at Busan\n",
			},
		},
		"recall too low":    {text: sentences, code: 1, out: []string{"missed: what"}, err: "recall is 0.500, less than 0.8"},
		"precision too low": {text: "no\tplease look up the tide", code: 1, out: []string{"wrong: please"}, err: "precision is 0.000, less than 0.9"},
		"no label":          {text: "web\tsome text\nmaybe\tsome text\n", code: 1, err: "line 2 is not a label"},
		"no sentence":       {text: "web\t \n", code: 1, err: "line 1 is not a label"},
		"nothing":           {text: "# nothing\n", code: 1, err: "no sentences"},
		"no gateway":        {text: sentences, args: []string{"--url", "http://127.0.0.1:1"}, code: 1, err: "asking the gateway"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := newTerminal(t, withoutModel)
			file := filepath.Join(x.dir, "sentences.tsv")
			require.NoError(t, os.WriteFile(file, []byte(tt.text), 0o600))
			require.Equal(t, tt.code, x.run(t.Context(), append([]string{"intent", "check", file}, tt.args...)...), x.errOut.String())
			for _, text := range tt.out {
				require.Contains(t, x.out.String(), text)
			}
			require.Contains(t, x.errOut.String(), tt.err)
		})
	}
	x := newTerminal(t, withoutModel)
	require.Equal(t, 1, x.run(t.Context(), "intent", "check", filepath.Join(x.dir, "none.tsv")))
	require.Contains(t, x.errOut.String(), "none.tsv")
}

// a running gateway learns from what was missed, and finds it the next time.
func TestIntentLearn(t *testing.T) {
	t.Parallel()
	port := strconv.Itoa(freeport.Port(t))
	gateway := func(key string) *terminal {
		x := newTerminal(t, strings.Replace(withoutModel, "{host: 127.0.0.1}", "{host: 127.0.0.1, port: "+port+", admin_key: "+key+"}", 1))
		x.env = map[string]string{"DATA_DIR": filepath.Join(x.dir, "data")}
		return x
	}
	const key = "the-admin-key-of-this-test"
	server := gateway(key)
	stop := server.start(t, "serve")
	server.awaitOutput(t, "server: bind")
	await.True(t, func() bool {
		status, _ := call(t, "http://127.0.0.1:"+port+"/readyz", "")
		return status == http.StatusOK
	})
	file := filepath.Join(server.dir, "sentences.tsv")
	require.NoError(t, os.WriteFile(file, []byte(sentences), 0o600))
	check := func(code int, key string, args ...string) *terminal {
		x := gateway(key)
		require.Equal(t, code, x.run(t.Context(), append([]string{"intent", "check", file}, args...)...), x.errOut.String())
		require.NotContains(t, x.out.String()+x.errOut.String(), "the-admin-key")
		return x
	}
	require.Contains(t, check(1, "the-admin-key-of-others", "--learn").errOut.String(), "status 401")
	x := check(1, key, "--learn")
	require.Contains(t, x.out.String(), "learned: [\"current tide\"] from what is the current tide at Busan\n1 keywords added\n")
	x = check(0, key, "--url", "http://127.0.0.1:"+port+"/v1")
	require.Contains(t, x.out.String(), "\nkeyword        1     0\n")
	require.Contains(t, x.out.String(), "recall 1.000")
	require.Equal(t, 0, stop(), server.errOut.String())
}
