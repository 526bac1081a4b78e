package embed_test

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/embed"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

// packed is the base64 of numbers.
func packed(numbers ...float32) string {
	var b []byte
	for _, f := range numbers {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(f))
	}
	return base64.StdEncoding.EncodeToString(b)
}

// samples are the answers to embeddings requests among the fixtures.
var samples = []string{
	"openai/embeddings-float.json", "openai/embeddings-base64.json", "ollama/embeddings-v1.json", "ollama/embed.json", "gemini-native/embed.json",
}

// What providers really send comes out in both formats.
func TestFixtures(t *testing.T) {
	t.Parallel()
	usage := map[string]openai.Usage{
		"openai/embeddings-float.json":  {Prompt: 6, Total: 6},
		"openai/embeddings-base64.json": {Prompt: 3, Total: 3},
		"ollama/embeddings-v1.json":     {Prompt: 4, Total: 4},
		"ollama/embed.json":             {Prompt: 8, Total: 8},
	}
	for _, file := range samples {
		for _, base64 := range []bool{false, true} {
			format := map[bool]string{false: "float", true: "base64"}[base64]
			t.Run(file+" as "+format, func(t *testing.T) {
				t.Parallel()
				body := fixtures.Get(file).Body
				before := string(body)
				out, u, err := embed.AnswerAs(body, base64, "my-model")
				require.NoError(t, err)
				require.Equal(t, usage[file], u)
				require.Equal(t, before, string(body))
				goldentest.Compare(t, strings.ReplaceAll(strings.TrimSuffix(file, ".json"), "/", "-")+"-"+format+".golden", out)
			})
		}
	}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	quarter := `"` + packed(0.25) + `"`
	tests := map[string]struct {
		body   string
		base64 bool
		model  string
		want   string
	}{
		"as it should be": { // number text and unknown members survive
			` {"object" : "list","data":[{"object":"embedding","index":0,"embedding":[1.0, -2.50e-1,0.1000000000000000055511151231257827]}],"x":{"y":1.0},"model":"e","usage":{"prompt_tokens":1,"total_tokens":1}} `,
			false, "e",
			`{"object" : "list","data":[{"object":"embedding","index":0,"embedding":[1.0, -2.50e-1,0.1000000000000000055511151231257827]}],"x":{"y":1.0},"model":"e","usage":{"prompt_tokens":1,"total_tokens":1}} `,
		},
		"model of the client":        {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"up"}`, false, `a"b`, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"a\"b"}`},
		"model kept":                 {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"up"}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"up"}`},
		"model added":                {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}]}`, false, "m", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}],"model":"m"}`},
		"model that is none":         {`{"object":"list","model":null,"data":[{"object":"embedding","index":0,"embedding":[1]}]}`, false, "", `{"object":"list","model":null,"data":[{"object":"embedding","index":0,"embedding":[1]}]}`},
		"numbers to base64":          {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25],"x":"\u00e9"}]}`, true, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `,"x":"\u00e9"}]}`},
		"base64 to numbers":          {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + packed(0.1, -1e-8, 3, 1e30, 0) + `"}]}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-1e-08,3,1e+30,0]}]}`},
		"base64 kept":                {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `}]}`, true, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `}]}`},
		"base64 without padding":     {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + strings.TrimRight(packed(0.25), "=") + `"}]}`, true, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `}]}`},
		"base64 with escapes":        {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"\/\/\/\u002fPw=="}]}`, true, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"////Pw=="}]}`},
		"mixed formats":              {`{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `},{"object":"embedding","index":1,"embedding":[0.5]}]}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25]},{"object":"embedding","index":1,"embedding":[0.5]}]}`},
		"out of order":               {`{"object":"list","data":[{"object":"embedding","index":2,"embedding":[3]}, {"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]}]}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]},{"object":"embedding","index":1,"embedding":[2]},{"object":"embedding","index":2,"embedding":[3]}]}`},
		"bare entries":               {`{"data":[{"embedding":[1],"note":null},{"index":null,"object":"vector","embedding":[2]}]}`, false, "m", `{"data":[{"object":"embedding","index":0,"embedding":[1],"note":null},{"object":"embedding","index":1,"embedding":[2]}],"object":"list","model":"m"}`},
		"the last of two counts":     {`{"object":null,"data":[{"object":"embedding","index":0,"embedding":[1],"embedding":[2]}]}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[2]}]}`},
		"byte order mark":            {"\ufeff" + `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}]}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[1]}]}`},
		"Ollama, without a name":     {`{"model":"bge-m3","embeddings":[[0.6,0.80],[1,0]],"prompt_eval_count":8,"load_duration":5}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.80]},{"object":"embedding","index":1,"embedding":[1,0]}],"model":"bge-m3","usage":{"prompt_tokens":8,"total_tokens":8}}`},
		"Ollama, the older way":      {`{"embedding":[0.25]}`, true, "m", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + quarter + `}],"model":"m"}`},
		"Gemini, one input":          {`{"embedding":{"values":[0.5,0.25],"statistics":{}}}`, false, "m", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5,0.25]}],"model":"m"}`},
		"Gemini, with a token count": {`{"embeddings":[{"values":[0.5]}],"usage":{"prompt_tokens":2}}`, false, "", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":2,"total_tokens":2}}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _, err := embed.AnswerAs([]byte(tt.body), tt.base64, tt.model)
			require.NoError(t, err)
			require.Equal(t, tt.want, string(out))
		})
	}
}

// none of these is an answer, and nothing of it shows in the error.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	entry := func(vector string) string { return `{"data":[{"embedding":` + vector + `}]}` }
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	tests := map[string]string{
		"nothing":                     "",
		"white space":                 " \n",
		"page":                        "<html>",
		"array":                       `[{"embedding":[1]}]`,
		"cut":                         `{"data":[{"embedding":[1`,
		"something follows":           `{"data":[{"embedding":[1]}]}{}`,
		"chat completion":             `{"object":"chat.completion","choices":[]}`,
		"error":                       `{"error":{"message":"secret"}}`,
		"error beside nothing":        `{"data":null,"error":{"message":"secret"}}`,
		"empty list":                  `{"object":"list","data":[]}`,
		"list is an object":           `{"data":{"embedding":[1]}}`,
		"list of models":              `{"object":"list","data":[{"id":"secret","object":"model"}]}`,
		"list of numbers":             `{"data":[1,2]}`,
		"list of vectors":             `{"data":[[1,2]]}`,
		"null":                        entry(`null`),
		"empty vector":                entry(`[]`),
		"empty text":                  entry(`""`),
		"null in it":                  entry(`[1,null]`),
		"text in it":                  entry(`["1"]`),
		"a vector per token":          entry(`[[1,2],[3,4]]`),
		"not a number":                entry(`[NaN]`),
		"infinite":                    entry(`[1e39]`),
		"infinite, in full":           entry(`[1` + strings.Repeat("0", 39) + `]`),
		"infinite, beyond everyone":   entry(`[-1E999999]`),
		"no base64":                   entry(`"secret!"`),
		"three bytes":                 entry(`"AAAA"`),
		"base64 of what is no number": entry(`"` + packed(1, nan) + `"`),
		"base64 of the infinite":      entry(`"` + packed(-inf) + `"`),
		"too many dimensions":         entry(`[0` + strings.Repeat(",0", 1<<16) + `]`),
		"too many bytes":              entry(`"` + strings.Repeat("A", 1<<19) + `"`),
		"index twice":                 `{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`,
		"index missing":               `{"data":[{"index":0,"embedding":[1]},{"index":2,"embedding":[2]}]}`,
		"index below zero":            `{"data":[{"index":-1,"embedding":[1]}]}`,
		"index beyond everything":     `{"data":[{"index":99999999999999999999,"embedding":[1]}]}`,
		"index is a text":             `{"data":[{"index":"0","embedding":[1]}]}`,
		"index meets a position":      `{"data":[{"index":1,"embedding":[1]},{"embedding":[2]}]}`,
		"more than anyone asks":       `{"data":[{"embedding":[1]}` + strings.Repeat(`,{"embedding":[1]}`, openai.MaxInputs) + `]}`,
		"native, empty":               `{"embeddings":[]}`,
		"native, null":                `{"embeddings":null}`,
		"native, an empty vector":     `{"embeddings":[[1],[]]}`,
		"native, no values":           `{"embeddings":[{"secret":[1]}]}`,
		"native, one that is none":    `{"embedding":{"values":{}}}`,
		"native, more than anyone":    `{"embeddings":[[1]` + strings.Repeat(`,[1]`, openai.MaxInputs) + `]}`,
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, base64 := range []bool{false, true} {
				out, usage, err := embed.AnswerAs([]byte(body), base64, "m")
				require.ErrorIs(t, err, classify.ErrEmptyAnswer)
				require.Empty(t, out)
				require.Zero(t, usage)
				require.NotContains(t, err.Error(), "secret")
				require.Equal(t, classify.Upstream, classify.Ended(err).Class)
			}
		})
	}
}

// An answer is complete only with a vector for each input. One that names no model has that of the request.
func TestAnswerToARequest(t *testing.T) {
	t.Parallel()
	req, err := openai.ScanEmbeddings([]byte(`{"model":"m","input":["a","b"],"encoding_format":"base64"}`))
	require.NoError(t, err)
	out, _, err := embed.Answer(req, []byte(`{"embeddings":[[1],[2]]}`), "m")
	require.NoError(t, err)
	require.Contains(t, string(out), packed(2))
	out, _, err = embed.Answer(req, []byte(`{"embeddings":[[1],[2]]}`), "")
	require.NoError(t, err)
	require.Contains(t, string(out), `"model":"m"`)
	for _, body := range []string{`{"embeddings":[[1]]}`, `{"embeddings":[[1],[2],[3]]}`, `{"data":[{"embedding":[1]}]}`} {
		_, _, err := embed.Answer(req, []byte(body), "m")
		require.ErrorIs(t, err, classify.ErrEmptyAnswer)
	}
}

// What grows in its conversion is bounded, too.
func TestAnswerThatGrows(t *testing.T) {
	t.Parallel()
	vector := strings.Repeat(packed(-1.2345678e-20, -1.2345678e-20, -1.2345678e-20), 1<<14) // 48 KiB of numbers in 256 KiB of text
	body := `{"embeddings":["` + vector + `"` + strings.Repeat(`,"`+vector+`"`, 127) + `]}`
	_, _, err := embed.AnswerAs([]byte(body), false, "")
	require.ErrorIs(t, err, classify.ErrEmptyAnswer)
	out, _, err := embed.AnswerAs([]byte(body), true, "")
	require.NoError(t, err)
	require.Greater(t, len(out), 32<<20)
	_, _, err = embed.AnswerAs([]byte(`{"x":"`+strings.Repeat("x", 64<<20)+`","embeddings":[[1]]}`), false, "")
	require.ErrorIs(t, err, classify.ErrEmptyAnswer)
}

type list struct {
	Object string
	Model  string
	Data   []struct {
		Object    string
		Index     int
		Embedding json.RawMessage
	}
}

// floats reads a vector of either format.
func floats(t *testing.T, raw json.RawMessage) []float32 {
	t.Helper()
	if raw[0] == '[' {
		var numbers []json.Number
		require.NoError(t, json.Unmarshal(raw, &numbers))
		all := make([]float32, len(numbers))
		for i, n := range numbers {
			f, err := strconv.ParseFloat(n.String(), 32)
			require.NoError(t, err)
			all[i] = float32(f)
		}
		return all
	}
	var packed []byte
	require.NoError(t, json.Unmarshal(raw, &packed))
	all := make([]float32, len(packed)/4)
	for i := range all {
		all[i] = math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:]))
	}
	return all
}

// Whatever a provider sends: what comes out is a complete list in the wanted format, means the same in both, and comes out of a second pass
// as it is.
func FuzzAnswer(f *testing.F) {
	for _, file := range samples {
		f.Add(fixtures.Get(file).Body, "m")
	}
	f.Add([]byte(`{"data":[{"index":1,"embedding":"AACAPw"},{"embedding":[1e-3,-0],"index":0,"x":1}],"data":[{"embedding":[2]}],"model":5}`), "")
	f.Add([]byte(`{"data":[{"embedding":[1],"embedding":"\/\/\/\/"}],"object":[],"usage":{"prompt_tokens":1e9}}`), "a\"b")
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		var vectors [2][][]float32
		for i, base64 := range []bool{false, true} {
			out, usage, err := embed.AnswerAs(body, base64, model)
			if err != nil {
				require.ErrorIs(t, err, classify.ErrEmptyAnswer)
				continue
			}
			require.GreaterOrEqual(t, usage.Total, int64(0))
			var l list
			require.NoError(t, json.Unmarshal(dropFolded(t, out), &l), "%s", out)
			require.Equal(t, "list", l.Object)
			require.NotEmpty(t, l.Data)
			for n, e := range l.Data {
				require.Equal(t, "embedding", e.Object)
				require.Equal(t, n, e.Index)
				require.Equal(t, base64, e.Embedding[0] == '"')
				v := floats(t, e.Embedding)
				require.NotEmpty(t, v)
				vectors[i] = append(vectors[i], v)
			}
			again, _, err := embed.AnswerAs(out, base64, model)
			require.NoError(t, err)
			require.Equal(t, string(out), string(again))
		}
		require.Equal(t, vectors[0], vectors[1])
	})
}

// dropFolded removes members whose names differ from the known ones in case only: encoding/json takes them for the same.
func dropFolded(t *testing.T, body []byte) []byte {
	t.Helper()
	keep := func(m map[string]json.RawMessage, names ...string) {
		for name := range m {
			known := false
			for _, n := range names {
				known = known || n == name
			}
			if !known {
				delete(m, name)
			}
		}
	}
	var all map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(body, &all))
	keep(all, "object", "data")
	var data []map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(all["data"], &data))
	for _, e := range data {
		keep(e, "object", "index", "embedding")
	}
	var err error
	all["data"], err = json.Marshal(data)
	require.NoError(t, err)
	out, err := json.Marshal(all)
	require.NoError(t, err)
	return out
}

func BenchmarkAnswer(b *testing.B) {
	vector := `[` + strings.Repeat("-0.006929283495992422,", 1535) + `0.1]`
	body := []byte(`{"object":"list","data":[{"object":"embedding","index":0,"embedding":` + vector + `}],"model":"e","usage":{"prompt_tokens":1,"total_tokens":1}}`)
	for name, base64 := range map[string]bool{"kept": false, "converted": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := embed.AnswerAs(body, base64, "m"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
