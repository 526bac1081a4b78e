package ollama

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Provider facts 3.11: which window is asked for.
func TestChoose(t *testing.T) {
	t.Parallel()
	usual := facts{known: true, usual: 4096, most: 131_072}
	running := func(n int) facts {
		f := usual
		f.loaded = n
		return f
	}
	for name, tt := range map[string]struct {
		need   int
		facts  facts
		raised int
		want   int
	}{
		"fits":                            {4096, usual, 0, 0},
		"does not fit":                    {4097, usual, 0, 8192},
		"the next power of two":           {8193, usual, 0, 16_384},
		"a power of two":                  {16_384, usual, 0, 16_384},
		"more than the model has":         {500_000, usual, 0, 131_072},
		"a model that is no power of two": {30_000, facts{known: true, usual: 4096, most: 20_000}, 0, 20_000},
		"a small model":                   {5000, facts{known: true, usual: 4096, most: 4096}, 0, 0},
		"a model of unknown size":         {5000, facts{known: true, usual: 4096}, 0, 8192},
		"a setting of the model":          {10_000, facts{known: true, usual: 16_384, most: 131_072}, 0, 0},
		"a server that says nothing":      {50_000, facts{}, 0, 0},
		"runs with enough":                {10_000, running(32_768), 0, 32_768},
		"runs with too little":            {40_000, running(32_768), 0, 65_536},
		"runs, and fits anyway":           {1000, running(32_768), 0, 0},
		"raised, and fits anyway":         {1000, usual, 16_384, 16_384},
		"raised, but not enough":          {20_000, usual, 16_384, 32_768},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, choose(tt.need, tt.facts, tt.raised))
		})
	}
}

func TestEstimate(t *testing.T) {
	t.Parallel()
	body := func(messages, more string) string { return `{"model":"m","messages":[` + messages + `]` + more + `}` }
	text := fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("a", 3000))
	image := `{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("A", 90_000) + `"}}`
	for name, tt := range map[string]struct {
		body     string
		low, top int
	}{
		"no messages":           {`{"model":"m"}`, 0, 0},
		"text":                  {body(text, ""), 2024, 2040},
		"a limit":               {body(text, `,"max_tokens":10`), 1010, 1030},
		"the newer limit":       {body(text, `,"max_tokens":10,"max_completion_tokens":20`), 1020, 1040},
		"a limit without sense": {body(text, `,"max_tokens":128000`), 9192, 9210},
		"tools":                 {body(text, `,"tools":["`+strings.Repeat("b", 3000)+`"]`), 3024, 3042},
		"an image":              {body(`{"role":"user","content":[`+image+`]}`, ""), 2048, 2068},
		"an image alone":        {body(`{"role":"user","content":`+image+`}`, ""), 2048, 2068},
		"an image in a text":    {body(`{"role":"user","content":"{\"image_url\":1}"}`, ""), 1024, 1044},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := estimate([]byte(tt.body))
			require.GreaterOrEqual(t, got, tt.low)
			require.LessOrEqual(t, got, tt.top)
		})
	}
}

func TestNative(t *testing.T) {
	t.Parallel()
	for base, want := range map[string]string{
		"http://h:1/v1": "http://h:1/api/chat", "http://h:1/v1/": "http://h:1/api/chat", "http://h:1": "http://h:1/api/chat",
		"http://h/x/v1?k=v1": "http://h/x/api/chat?k=v1",
	} {
		require.Equal(t, want, native(base, "/api/chat"))
	}
}
