package movein_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/movein"
)

// bomb is a small text that stands for ten to the power of nine values.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	return b.String() + "model_list: *a9\n"
}

// what can't be read, and what is of nobody or of several, is an error that says so and shows nothing of the source.
func TestRefused(t *testing.T) {
	t.Parallel()
	const list = "model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: sk-secret-word}}]\n"
	tests := map[string]struct {
		source, format string
		err            []string
	}{
		"nothing":              {"", "", []string{"holds nothing"}},
		"comments":             {"# nothing\n", "", []string{"holds nothing"}},
		"text":                 {"hello", "", []string{"Expected is one of", "litellm: model_list"}},
		"null":                 {"null", "", []string{"Expected is one of"}},
		"something else":       {"services: {web: {image: nginx}}", "", []string{"Expected is one of"}},
		"ours":                 {"providers: [{id: groq, key: k}]", "", []string{"looks like a configuration of HydraLLM itself"}},
		"of two formats":       {"model_list: []\ngovernance: {}\n", "", []string{"may be of litellm or bifrost: say which with --from"}},
		"unknown format":       {list, "haproxy", []string{`no format "haproxy"`}},
		"list for LiteLLM":     {"[1]", "litellm", []string{"a configuration of litellm has model_list"}},
		"nothing taken":        {"model_list: [{model_name: m, litellm_params: {model: bedrock/m}}]", "", []string{"nothing in it can be taken over"}},
		"broken YAML":          {"model_list:\n  - [sk-secret-word\n  b: c\n", "", []string{"f.yaml:2: is no YAML"}},
		"alias without anchor": {"model_list: *sk-secret-word", "", []string{"has an alias without an anchor"}},
		"two documents":        {list + "---\n" + list, "", []string{"more than one YAML document"}},
		"key twice":            {list + list, "", []string{"f.yaml:2: gives model_list twice (first on line 1)"}},
		"key twice, deep":      {"model_list:\n- {model_name: m, model_name: m}", "", []string{"f.yaml:2: gives model_list[0].model_name twice"}},
		"key is a number":      {"1: x\nmodel_list: []", "", []string{"f.yaml:1: has a key that is not text"}},
		"key is null":          {"~: x\nmodel_list: []", "", []string{"f.yaml:1: has a key that is not text"}},
		"key is a list":        {"model_list: []\n? [a, b]\n: x", "", []string{"f.yaml:2: has a key that is not text"}},
		"tag":                  {"model_list: !!binary c2VjcmV0", "", []string{"f.yaml:1: has a tag that means nothing here"}},
		"not UTF-8":            {"model_list:\n  - \xff\xfe", "", []string{"f.yaml:2: a byte that is not UTF-8"}},
		"UTF-16":               {"\xff\xfem\x00o\x00", "", []string{"f.yaml:1: a byte that is not UTF-8"}},
		"control character":    {"model_list: \"\x01\"", "", []string{"is no YAML"}},
		"bomb":                 {bomb(), "", []string{"holds more than 200000 values"}},
		"own alias":            {"model_list: &a [*a]", "", []string{"f.yaml:1: is nested deeper than 60 levels"}},
		"own merge":            {"model_list: &a\n  <<: *a\n  b: c", "", []string{"nested deeper"}},
		"merge of text":        {"model_list: {<<: text}", "", []string{"a merge key that leads to no mapping"}},
		"deep":                 {strings.Repeat("[", 5000) + strings.Repeat("]", 5000), "", []string{"deeper than 60 levels"}},
		"deep mappings":        {"model_list: " + strings.Repeat("{a: ", 100) + "1" + strings.Repeat("}", 100), "", []string{"deeper than 60 levels"}},
		"large":                {"model_list: " + strings.Repeat("x", 9<<20), "", []string{"larger than 8388608 bytes"}},
		"large YAML":           {"model_list: " + strings.Repeat("x", 2<<20), "", []string{"larger than 1048576 bytes of YAML"}},
		"many":                 {"{\"model_list\": [" + strings.Repeat("1,", 300_000) + "1]}", "", []string{"holds more than 200000 values"}},
		"broken JSON":          {"{\"model_list\": [\n{\"model_name\": sk-secret-word}]]", "", []string{"f.yaml:2: is no JSON"}},
		"JSON, cut off":        {"{\"model_list\": [", "", []string{"f.yaml:1: is no JSON: it ends in the middle"}},
		"JSON, key twice":      {"{\"model_list\": [],\n\"model_list\": []}", "", []string{"f.yaml:2: gives model_list twice"}},
		"JSON and more":        {"{\"model_list\": []} {}", "", []string{"something follows the JSON text"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := movein.Import(movein.Source{Name: "f.yaml", Data: []byte(tt.source), Format: tt.format})
			require.Error(t, err)
			for _, text := range tt.err {
				require.ErrorContains(t, err, text)
			}
			require.NotContains(t, err.Error(), "secret-word")
			if r != nil {
				require.Empty(t, r.Config)
			}
		})
	}
}

// A source is read whatever it is: the result is sound, shows no secret, and accounts for every value.
func fuzz(f *testing.F, format string) {
	f.Helper()
	files, err := filepath.Glob("testdata/" + format + "/[0-9]*")
	require.NoError(f, err)
	for _, file := range files {
		if strings.Contains(file, ".golden.") {
			continue
		}
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, source string) {
		r, err := movein.Import(movein.Source{Name: "f", Data: []byte(source), Format: format})
		if err != nil {
			require.NotContains(t, err.Error(), "does not pass the check", source)
			return
		}
		require.NotEmpty(t, r.Config)
		for _, v := range r.Secrets() {
			if len(v) >= 12 && !strings.Contains(format+"stand-in", v) {
				require.NotContains(t, r.Report(), v)
			}
		}
	})
}

func FuzzLiteLLM(f *testing.F) { fuzz(f, "litellm") }
func FuzzBifrost(f *testing.F) { fuzz(f, "bifrost") }
func FuzzOlla(f *testing.F)    { fuzz(f, "olla") }
func FuzzGPTLoad(f *testing.F) { fuzz(f, "gpt-load") }
