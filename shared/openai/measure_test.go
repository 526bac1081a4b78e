package openai

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/openai/rawjson"
)

// measured reads a body, whether or not the request makes sense.
func measured(body string) Request {
	r := &requestScan{Request: Request{Choices: 1, body: []byte(body)}, s: rawjson.Scan([]byte(body))}
	_ = r.scan() // what was read is what counts here
	return r.Request
}

//
func TestTokens(t *testing.T) {
	t.Parallel()
	user := func(content string) string {
		return `{"model":"auto","messages":[{"role":"user","content":` + content + `}]}`
	}
	a := func(n int) string { return strings.Repeat("a", n) }
	tests := map[string]struct {
		body string
		want int64
	}{
		"a quarter of the characters":     {user(`"` + a(400) + `"`), 100},
		"rounded down":                    {user(`"` + a(7) + `"`), 1},
		"at least one":                    {user(`"a"`), 1},
		"also for no text":                {user(`""`), 1},
		"null weighs nothing":             {user(`null`), 0},
		"no content":                      {`{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"` + a(400) + `"}}]}]}`, 0},
		"one below the threshold":         {user(`"` + a(8192*4-1) + `"`), 8191},
		"at the threshold":                {user(`"` + a(8192*4) + `"`), 8192},
		"code points, not bytes":          {user(`"` + strings.Repeat("한", 40) + `"`), 10},
		"beyond the first plane":          {user(`"` + strings.Repeat("🌍", 40) + `"`), 10},
		"escapes are what they stand for": {user(`"` + strings.Repeat(`\n\"\\\u00e9`, 10) + `"`), 10},
		"escaped pairs are one":           {user(`"` + strings.Repeat(`\ud83c\udf0d`, 40) + `"`), 10},
		"lone halves are one each":        {user(`"` + strings.Repeat(`\ud83c`, 40) + `"`), 10},
		"several messages":                {`{"messages":[{"role":"system","content":"` + a(40) + `"},{"role":"user","content":"` + a(3) + `"}]}`, 11},
		"every role":                      {`{"messages":[{"role":"tool","content":"` + a(40) + `"},{"content":"` + a(40) + `","role":"x"}]}`, 20},
		"parts, each by itself":           {user(`[{"type":"text","text":"` + a(7) + `"},{"text":"` + a(7) + `","type":"text"},"` + a(8) + `"]`), 4},
		"an image":                        {user(`[{"type":"text","text":"abcd"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + a(9999) + `"}}]`), 257},
		"two images":                      {user(`[{"type":"image_url"},{"image_url":"x","type":"image_url"}]`), 512},
		"an object":                       {user(`{"type":"text","text":"` + a(40) + `"}`), 10},
		"an object that is an image":      {user(`{"type":"image_url","image_url":{"url":"x"}}`), 256},
		"another part":                    {user(`[{"type":"input_audio","input_audio":{"data":"` + a(400) + `"}}]`), 0},
		"a number":                        {user(`12`), 0},
		"lists in lists":                  {user(`[["` + a(400) + `"]]`), 0},
		"no parts":                        {user(`[]`), 0},
		"messages that are none":          {`{"messages":["` + a(40) + `", 1, null]}`, 0},
		"max_tokens":                      {`{"max_tokens":100,"messages":[{"role":"user","content":"` + a(40) + `"}]}`, 110},
		"max_completion_tokens":           {`{"max_tokens":100,"messages":[{"role":"user","content":"` + a(40) + `"}],"max_completion_tokens":50}`, 60},
		"a limit with a fraction":         {`{"max_tokens":1e2,"messages":[{"role":"user","content":"` + a(40) + `"}]}`, 110},
		"limits that make no sense":       {`{"max_tokens":-5,"max_completion_tokens":"many","messages":[{"role":"user","content":"` + a(40) + `"}]}`, 10},
		"a limit beyond all bounds":       {`{"messages":[{"role":"user","content":"` + a(40) + `"}],"max_tokens":9223372036854775807}`, math.MaxInt64},
		"null for a limit":                {`{"max_tokens":null,"messages":[{"role":"user","content":"` + a(40) + `"}]}`, 10},
		"the old prompt":                  {`{"prompt":"` + a(40) + `"}`, 10},
		"the prompt without messages":     {`{"prompt":"` + a(40) + `","messages":[]}`, 10},
		"messages win over the prompt":    {`{"prompt":"` + a(400) + `","messages":[{"content":"` + a(40) + `"}]}`, 10},
		"tools do not count":              {`{"tools":[{"function":{"description":"` + a(400) + `"}}],"messages":[{"content":"` + a(40) + `"}]}`, 10},
		"names with escapes":              {`{"\u006dessages":[{"\u0063ontent":"` + a(40) + `"}]}`, 10},
		"no object":                       {`[1]`, 0},
		"nothing":                         {``, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, measured(tt.body).Tokens)
		})
	}
}

//
func TestImages(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]bool{
		`[{"type":"image_url","image_url":{"url":"data:,"}}]`:                                 true,
		`[{"type":"text","text":"what is it?"},{"image_url":{"url":"x"},"type":"image_url"}]`: true,
		`{"type":"image_url"}`:                 true,
		`{"\u0074ype":"image\u005furl"}`:       true,
		`"image_url"`:                          false,
		`"see http://x/y.png"`:                 false,
		`"{\"type\":\"image_url\"}"`:           false,
		`["image_url"]`:                        false,
		`[{"type":"text","text":"image_url"}]`: false,
		`[{"image_url":{"url":"x"}}]`:          false,
		`[{"type":"Image_URL"}]`:               false,
		`[{"type":["image_url"]}]`:             false,
		`[[{"type":"image_url"}]]`:             false,
		`null`:                                 false,
	} {
		q := measured(`{"messages":[{"role":"user","content":` + content + `}]}`)
		require.Equal(t, want, q.Images, content)
	}
	require.True(t, measured(`{"messages":[{"content":[{"type":"image_url"}]},{"content":"and now?"}]}`).Images, "in an earlier message")
	require.False(t, measured(`{"content":[{"type":"image_url"}],"messages":[{"content":"x"}],"tools":[{"type":"image_url"}]}`).Images)
}

// what stages want to know of the last message and the tools.
func TestTraits(t *testing.T) {
	t.Parallel()
	type traits struct{ tools, userText bool }
	for body, want := range map[string]traits{
		`{"messages":[{"role":"user","content":"hi"}]}`:      {false, true},
		`{"messages":[{"content":"hi","role":"\u0075ser"}]}`: {false, true},
		`{"prompt":"hi"}`: {false, true},
		`{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"x"}]}`:                          {false, false},
		`{"messages":[{"role":"user","content":"hi"},{"role":"tool","content":"x"}]}`:                               {false, false},
		`{"messages":[{"role":"assistant","content":"x"},{"role":"user","content":[{"type":"text","text":"hi"}]}]}`: {false, true},
		`{"messages":[{"role":"user","content":["hi"]}]}`:                                                           {false, true},
		`{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}`:                                      {false, true},
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`:                   {false, false},
		`{"messages":[{"role":"user","content":[{"type":"image_url"},{"text":"hi"}]}]}`:                             {false, true},
		`{"messages":[{"role":"user","content":[{"type":"text","text":""},{"type":"file"}]}]}`:                      {false, false},
		`{"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function"}]}`:                               {true, true},
		`{"messages":[{"role":"user","content":"hi"}],"functions":[{}]}`:                                            {true, true},
		`{"messages":[{"role":"user","content":"hi"}],"tools":[]}`:                                                  {false, true},
		`{"messages":[{"role":"user","content":"hi"}],"tools":null,"functions":{"tools":[1]}}`:                      {false, true},
	} {
		r := measured(body)
		require.Equal(t, want, traits{r.Tools, r.UserText}, body)
	}
}

// plainTokens is the estimate of R-089 by other means.
func plainTokens(content any) (tokens int64, images bool) {
	weigh := func(s string) int64 { return max(1, int64(utf8.RuneCountInString(s)/4)) }
	switch v := content.(type) {
	case string:
		return weigh(v), false
	case map[string]any:
		if v["type"] == "image_url" {
			return 256, true
		}
		if s, ok := v["text"].(string); ok {
			return weigh(s), false
		}
	case []any:
		for _, part := range v {
			if _, list := part.([]any); list {
				continue
			}
			n, image := plainTokens(part)
			tokens, images = tokens+n, images || image
		}
	}
	return tokens, images
}

func FuzzMeasure(f *testing.F) {
	f.Add([]byte(`"text"`))
	f.Add([]byte(`[{"type":"text","text":"한\u00e9\ud83c\udf0d\n"},{"type":"image_url"},"x",{}]`))
	f.Add([]byte(`{"type":"image_url","type":"text","text":"a","text":"` + strings.Repeat("b", 99) + `"}`))
	f.Add([]byte(`"\ud83c\ud83c\udf0d\\\""`))
	f.Fuzz(func(t *testing.T, content []byte) {
		require.GreaterOrEqual(t, measured(string(content)).Tokens, int64(0)) // anything may come
		var value any
		if !rawjson.Valid(content) || json.Unmarshal(content, &value) != nil {
			return
		}
		q := measured(fmt.Sprintf(`{"messages":[{"content":%s}]}`, content))
		tokens, images := plainTokens(value)
		require.Equal(t, tokens, q.Tokens)
		require.Equal(t, images, q.Images)
	})
}

func FuzzCharacters(f *testing.F) {
	f.Add(`"abc한🌍\n\ud83c\udf0d\ud83c"`)
	f.Add(`"` + strings.Repeat("é", 17) + `\\"`)
	f.Fuzz(func(t *testing.T, raw string) {
		if raw = strings.TrimSpace(raw); !rawjson.Valid([]byte(raw)) || raw[0] != '"' {
			return
		}
		require.Equal(t, int64(utf8.RuneCountInString(rawjson.Text([]byte(raw)))), characters([]byte(raw[1:len(raw)-1])))
	})
}

func BenchmarkScanRequestText(b *testing.B) {
	for name, text := range map[string]string{
		"english": strings.Repeat(`The lamp on the desk is green, and nobody knows who switched it on.\n`, 1000),
		"korean":  strings.Repeat(`책상 위의 등은 초록색이고 누가 켰는지 아무도 모른다.\n`, 1000),
		"short":   "hi",
	} {
		body := []byte(`{"model":"auto","stream":true,"messages":[{"role":"system","content":"You are kind."},{"role":"user","content":"` + text + `"}],"max_tokens":100}`)
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if r, err := ScanRequest(body); err != nil || r.Tokens == 0 {
					b.Fatal("nothing measured")
				}
			}
		})
	}
}
