package gemini_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/classify"
	"hydrallm/services/dispatcher/internal/dialect/gemini"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
	"hydrallm/shared/testkit/fixtures"
	"hydrallm/shared/testkit/goldentest"
)

var made = regexp.MustCompile(`"(call_|chatcmpl-)[a-z2-7]{26}"|"created":[0-9]+`)

// steady replaces what is different each time.
func steady(text []byte) string {
	return made.ReplaceAllStringFunc(string(text), func(s string) string {
		if strings.HasPrefix(s, `"created"`) {
			return `"created":1790000000`
		}
		return s[:strings.IndexAny(s, "_-")+1] + `made"`
	})
}

func events(tb testing.TB, text io.Reader) string {
	tb.Helper()
	out, err := answertest.Text(source(text))
	require.NoError(tb, err)
	return out
}

// source is the translation of a stream.
func source(r io.Reader) answer.Source { return answertest.Translate(gemini.Translator{}.Events(), r) }

func completion(text string) string { return string(filled([]byte(text))) }

// filled gives the translation of a whole answer, or the body if it is none.
func filled(body []byte) []byte { return answertest.Filled(gemini.Translator{}.Completion, body) }

// relayed is what the dispatcher makes of a translated stream.
type relayed struct {
	body    gjson.Result // the answer put together
	problem classify.Class
	err     error
}

// relay reads a translated stream as the dispatcher does for a client that wants JSON.
func relay(tb testing.TB, text string) (r relayed) {
	tb.Helper()
	body, problem, err := answertest.Collect(answertest.Chat(strings.NewReader(text)), answertest.Options{})
	switch {
	case problem != nil:
		r.problem = classify.Of(classify.Answer{Provider: "gemini", Status: 200, Event: true, Body: problem}).Class
	case err == nil:
		require.True(tb, gjson.ValidBytes(body), "%s", body)
		r.body = gjson.ParseBytes(body)
	}
	r.err = err
	return r
}

// filtered is what a client that streams gets of a translated stream.
func filtered(tb testing.TB, text string) string {
	tb.Helper()
	out, problem, err := answertest.Relay(answertest.Chat(strings.NewReader(text)), answertest.Options{IncludeUsage: true})
	require.NoError(tb, err)
	require.Nil(tb, problem)
	return out
}

// each recorded answer becomes what a client of Chat Completions knows.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("gemini-native") {
		if f.Kind() != "json" {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			got := filled(f.Body)
			if f.File == "gemini-native/generate.json" {
				require.True(t, gjson.ValidBytes(got))
				require.Equal(t, got, answertest.Completion(got, answertest.Options{}), "nothing is left to repair")
				require.Equal(t, stream.Usage{Prompt: 9, Completion: 31, Total: 40}, answertest.Usage(got))
				goldentest.Compare(t, "generate.json", []byte(steady(got)+"\n"))
				return
			}
			require.Equal(t, f.Body, got, "what is no answer stays as it is")
		})
	}
}

func TestRecordedStreams(t *testing.T) {
	t.Parallel()
	for _, f := range fixtures.Of("gemini-native") {
		if f.Kind() != "sse" {
			continue
		}
		t.Run(f.File, func(t *testing.T) {
			t.Parallel()
			out := events(t, bytes.NewReader(f.Body))
			goldentest.Compare(t, strings.TrimPrefix(f.File, "gemini-native/"), []byte(steady([]byte(out))))
			require.Equal(t, steady([]byte(out)), steady([]byte(events(t, iotest.OneByteReader(bytes.NewReader(f.Body))))))

			r := relay(t, out)
			require.Equal(t, f.Class, string(r.problem))
			require.Equal(t, f.Class == "", strings.HasSuffix(out, openai.Done))
			if f.Class == "" {
				require.NoError(t, r.err)
				require.Equal(t, out, filtered(t, out), "nothing is left to repair")
			}
		})
	}
}

// A stream may arrive in pieces of any size and be read in pieces of any size.
func TestPiecesMakeNoDifference(t *testing.T) { // SSE-05
	t.Parallel()
	var text []byte
	for _, f := range fixtures.Of("gemini-native") {
		if f.Kind() == "sse" && f.Class == "" {
			text = append(text, f.Body...)
		}
	}
	want := steady([]byte(events(t, bytes.NewReader(text))))
	for size := 1; size < 200; size++ {
		out := events(t, &pieces{rest: text, size: size})
		require.Equal(t, want, steady([]byte(out)), size)
	}
}

type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// What was translated can be read before more of the stream is there.
func TestEventsArePassedOnAtOnce(t *testing.T) {
	t.Parallel()
	src, w := io.Pipe()
	t.Cleanup(func() { require.NoError(t, src.Close()) })
	out := source(src)
	written := make(chan error, 1)
	for _, text := range []string{"a", "b"} {
		go func() {
			_, err := io.WriteString(w, `data: {"candidates":[{"content":{"parts":[{"text":"`+text+`"}]}}]}`+"\r\n\r\n")
			written <- err
		}()
		for {
			c, err := out.Next()
			require.NoError(t, err)
			if got := c.Choices[0].Content; answer.Given(got) != nil {
				require.Equal(t, `"`+text+`"`, string(got))
				break
			}
		}
		require.NoError(t, <-written)
	}
}

// native makes an answer of one candidate.
func native(parts, finish string) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]}` + finish + `}],"modelVersion":"gamma","responseId":"r1"}`
}

func data(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// Whole answers and streams say the same.
func TestAnswers(t *testing.T) {
	t.Parallel()
	const call = `{"functionCall":{"id":"c1","name":"f","args":{ "q" : 1.50, "s":"\u00e9\n" }}}`
	const wantCall = `{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"q\":1.50,\"s\":\"\\u00e9\\n\"}"}}`
	cases := []struct{ name, answer, path, want string }{
		{"text", native(`{"text":"a "},{"text":"\u00e9<\/b>"}`, "STOP"), "message.content", `"a \u00e9<\/b>"`},
		{"thoughts", native(`{"text":"Hm","thought":true},{"text":".","thought":true},{"text":"a"}`, "STOP"), "message.reasoning_content", `"Hm."`},
		{"only thoughts", native(`{"text":"Hm","thought":true}`, "STOP"), "message.content", `""`},
		{"call", native(call, "STOP"), "message.tool_calls", `[` + wantCall + `]`},
		{"content of a call", native(call, "STOP"), "message.content", `null`},
		{"finish of a call", native(call, "STOP"), "finish_reason", `"tool_calls"`},
		{"text and calls", native(`{"text":"a"},`+call, "STOP"), "message.content", `"a"`},
		{
			"signature of a call", native(`{"functionCall":{"id":"c1","name":"f","args":null},"thoughtSignature":"c2ln"}`, "STOP"), "message.tool_calls.0",
			`{"id":"c1","type":"function","extra_content":{"google":{"thought_signature":"c2ln"}},"function":{"name":"f","arguments":"{}"}}`,
		},
		{"a call of nothing", native(`{"functionCall":{"args":{}}},{"text":"a"}`, "STOP"), "message.tool_calls", ``},
		{"signature of a text is dropped", native(`{"text":"a","thoughtSignature":"c2ln"}`, "STOP"), "message", `{"role":"assistant","content":"a"}`},
		{"image", native(`{"text":"Here:"},{"inlineData":{"mimeType":"image\/png","data":"iVBOR\/w0="}}`, "STOP"), "message.images.0.image_url.url", `"data:image\/png;base64,iVBOR\/w0="`},
		{"sketches are no answer", native(`{"thought":true,"inlineData":{"mimeType":"image/png","data":"AA=="}},{"text":"a"}`, "STOP"), "message.images", ``},
		{"media of other kinds", native(`{"inlineData":{"mimeType":"audio/wav","data":"AA=="}},{"text":"a"}`, "STOP"), "message", `{"role":"assistant","content":"a"}`},
		{"unknown parts", native(`{"executableCode":{"code":"x"}},{"text":"a"},7,null`, "STOP"), "message.content", `"a"`},
		{"finish of a whole text", native(`{"text":"a"}`, "STOP"), "finish_reason", `"stop"`},
		{"finish by length", native(`{"text":"a"}`, "MAX_TOKENS"), "finish_reason", `"length"`},
		{"finish by safety", native(`{"text":"a"}`, "SAFETY"), "finish_reason", `"content_filter"`},
		{"finish by recitation", native(`{"text":"a"}`, "RECITATION"), "finish_reason", `"content_filter"`},
		{"finish by language", native(``, "LANGUAGE"), "finish_reason", `"content_filter"`},
		{"finish by blocklist", native(``, "BLOCKLIST"), "finish_reason", `"content_filter"`},
		{"finish by prohibited content", native(``, "PROHIBITED_CONTENT"), "finish_reason", `"content_filter"`},
		{"finish by SPII", native(``, "SPII"), "finish_reason", `"content_filter"`},
		{"finish by image safety", native(``, "IMAGE_SAFETY"), "finish_reason", `"content_filter"`},
		{"finish by a new reason, answered", native(`{"text":"a"}`, "NEW"), "finish_reason", `"stop"`},
		{"finish by a new reason, not answered", native(``, "NEW"), "finish_reason", `"content_filter"`},
		{"finish of an empty answer", native(``, "STOP"), "finish_reason", `"stop"`},
		{"finish after a bad call, answered", native(`{"text":"a"}`, "MALFORMED_FUNCTION_CALL"), "finish_reason", `"stop"`},
		{"finish after a bad call, called", native(call, "UNEXPECTED_TOOL_CALL"), "finish_reason", `"tool_calls"`},
		{"finish for another reason, answered", native(`{"text":"a"}`, "OTHER"), "finish_reason", `"stop"`},
		{"no finish in a number", strings.Replace(native(`{"text":"a"}`, "X"), `"X"`, `0,"finishReason":"STOP"`, 1), "finish_reason", `"stop"`},
		{"finish 1", strings.Replace(native(``, "X"), `"X"`, `1`, 1), "finish_reason", `"stop"`},
		{"finish 2", strings.Replace(native(``, "X"), `"X"`, `2`, 1), "finish_reason", `"length"`},
		{"finish 3", strings.Replace(native(``, "X"), `"X"`, `3`, 1), "finish_reason", `"content_filter"`},
		{"finish 4", strings.Replace(native(``, "X"), `"X"`, `4`, 1), "finish_reason", `"content_filter"`},
		{"blocked prompt", `{"promptFeedback":{"blockReason":"SAFETY"}}`, "finish_reason", `"content_filter"`},
		{"blocked prompt has no content", `{"promptFeedback":{"blockReason":"OTHER"},"candidates":[]}`, "message", `{"role":"assistant","content":""}`},
		{"feedback that blocks nothing", `{"promptFeedback":{"safetyRatings":[]},` + native(`{"text":"a"}`, "STOP")[1:], "message.content", `"a"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			whole := gjson.Parse(completion(c.answer))
			require.True(t, whole.IsObject())
			got := whole.Get("choices.0." + c.path).Raw
			require.Equal(t, c.want, strings.Replace(got, `,"refusal":null`, "", 1))

			r := relay(t, events(t, strings.NewReader(data(c.answer))))
			require.NoError(t, r.err)
			streamed := r.body.Get("choices.0." + c.path).Raw
			require.Equal(t, gjson.Parse(steady([]byte(c.want))).Value(), gjson.Parse(steady([]byte(streamed))).Value())
		})
	}
}

// A candidate that fails before it answers is an attempt to repeat; the classifier must see why.
func TestMisfires(t *testing.T) {
	t.Parallel()
	for reason, class := range map[string]classify.Class{
		"MALFORMED_FUNCTION_CALL": classify.BadOutput, "UNEXPECTED_TOOL_CALL": classify.BadOutput, "TOO_MANY_TOOL_CALLS": classify.BadOutput,
		"OTHER": classify.BadOutput, "MALFORMED_RESPONSE": classify.BadOutput, "MISSING_THOUGHT_SIGNATURE": classify.BadOutput,
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			for _, parts := range []string{``, `{"text":""}`, `{"text":"Hm","thought":true}`} {
				answer := native(parts, reason)
				require.Equal(t, answer, completion(answer))
				require.Equal(t, class, classify.Of(classify.Answer{Provider: "gemini", Status: 200, Body: []byte(answer)}).Class)
				require.False(t, answertest.Answers([]byte(answer)))

				out := events(t, strings.NewReader(data(answer)))
				require.Equal(t, data(answer), out)
				r := relay(t, out)
				require.Equal(t, class, r.problem)
			}
		})
	}
	t.Run("after thoughts", func(t *testing.T) {
		t.Parallel()
		out := events(t, strings.NewReader(data(native(`{"text":"Hm","thought":true}`, ""), native(``, "OTHER"), native(`{"text":"a"}`, "STOP"))))
		require.True(t, strings.HasSuffix(out, data(native(``, "OTHER"))), "nothing follows: %s", out)
		require.Equal(t, classify.BadOutput, relay(t, out).problem)
	})
	t.Run("of one candidate", func(t *testing.T) {
		t.Parallel()
		answer := `{"candidates":[{"finishReason":"OTHER"},{"index":1,"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}]}`
		for _, body := range []gjson.Result{gjson.Parse(completion(answer)), relay(t, events(t, strings.NewReader(data(answer)))).body} {
			require.Equal(t, `["stop","stop"]`, body.Get("choices.#.finish_reason").Raw)
			require.Equal(t, `["","a"]`, body.Get("choices.#.message.content").Raw)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, metadata, want string }{
		{
			"all", `{"promptTokenCount":10,"toolUsePromptTokenCount":5,"cachedContentTokenCount":8,"candidatesTokenCount":4,"thoughtsTokenCount":27,"totalTokenCount":46}`,
			`{"prompt_tokens":15,"completion_tokens":31,"total_tokens":46,"prompt_tokens_details":{"cached_tokens":8},"completion_tokens_details":{"reasoning_tokens":27}}`,
		},
		{
			"no total", `{"promptTokenCount":10,"candidatesTokenCount":4}`,
			`{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
		},
		{
			"nonsense", `{"promptTokenCount":-1,"candidatesTokenCount":"4","thoughtsTokenCount":99999999999999999999,"totalTokenCount":null}`,
			`{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}`,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			answer := `{"usageMetadata":` + c.metadata + `,` + native(`{"text":"a"}`, "STOP")[1:]
			require.Equal(t, c.want, gjson.Get(completion(answer), "usage").Raw)
			require.Equal(t, c.want, relay(t, events(t, strings.NewReader(data(answer)))).body.Get("usage").Raw)
		})
	}
	require.False(t, gjson.Get(completion(native(`{"text":"a"}`, "STOP")), "usage").Exists())
}

// The last usage counts, also when it comes after the end of the answer, and no chunk of a running stream has one.
func TestUsageOfStream(t *testing.T) { // STR-15
	t.Parallel()
	out := events(t, strings.NewReader(data(
		`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1}}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
		`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2}}`,
		`{"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":3}}`)))
	require.Equal(t, 2, strings.Count(out, `"usage"`))
	require.Equal(t, 2, strings.Count(out, `"choices":[],"usage"`))
	require.EqualValues(t, 3, relay(t, out).body.Get("usage.completion_tokens").Int())
	require.True(t, strings.HasSuffix(out, openai.Done))
}

// gateways that translate to the protocol state STOP before the text, or with every piece of it.
func TestPrematureStop(t *testing.T) {
	t.Parallel()
	piece := func(parts, finish string) string {
		if finish != "" {
			finish = `,"finishReason":"` + finish + `"`
		}
		return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0` + finish + `}],"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"totalTokenCount":5}}`
	}
	const hello, you, thought, call = `{"text":"Hello"}`, `{"text":" you"}`, `{"text":"Hm","thought":true}`, `{"functionCall":{"id":"c1","name":"f","args":{}}}`
	const image = `{"inlineData":{"mimeType":"image/png","data":"AA=="}}`
	type want struct {
		content, reasoning, finish string
		calls, images              int
	}
	for name, tc := range map[string]struct {
		events []string
		want   want
	}{
		"before the text":                 {[]string{piece(``, "STOP"), piece(``, "STOP"), piece(hello, ""), piece(you, ""), piece(``, "STOP")}, want{"Hello you", "", "stop", 0, 0}},
		"on every piece":                  {[]string{piece(``, "STOP"), piece(hello, "STOP"), piece(you, "STOP")}, want{"Hello you", "", "stop", 0, 0}},
		"on thoughts":                     {[]string{piece(thought, "STOP"), piece(hello, "STOP"), piece(you, ""), piece(``, "STOP")}, want{"Hello you", "Hm", "stop", 0, 0}},
		"in numbers":                      {[]string{strings.Replace(piece(``, "X"), `"X"`, "1", 1), piece(hello+","+you, ""), strings.Replace(piece(``, "X"), `"X"`, "2", 1)}, want{"Hello you", "", "length", 0, 0}},
		"on every piece, then a limit":    {[]string{piece(hello, "STOP"), piece(you, "STOP"), piece(``, "MAX_TOKENS")}, want{"Hello you", "", "length", 0, 0}},
		"on every piece, then a filter":   {[]string{piece(hello, "STOP"), piece(you, "STOP"), piece(``, "SAFETY")}, want{"Hello you", "", "content_filter", 0, 0}},
		"before a call":                   {[]string{piece(``, "STOP"), piece(hello, "STOP"), piece(call, "STOP"), piece(call, "STOP")}, want{"Hello", "", "tool_calls", 2, 0}},
		"before an image":                 {[]string{piece(hello, "STOP"), piece(image, "STOP")}, want{"Hello", "", "stop", 0, 1}},
		"of all, and another after a cut": {[]string{piece(hello, "STOP"), piece(you, "")}, want{"Hello you", "", "stop", 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := data(tc.events...)
			out, problem, err := answertest.Relay(source(strings.NewReader(text)), answertest.Options{IncludeUsage: true})
			require.NoError(t, err)
			require.Nil(t, problem)
			require.Equal(t, 1, strings.Count(out, `"finish_reason":"`), out)
			require.Equal(t, 1, strings.Count(out, `"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5`), out)
			require.True(t, strings.HasSuffix(out, openai.Done))
			for _, src := range []answer.Source{answertest.Chat(strings.NewReader(out)), source(strings.NewReader(text))} {
				body, problem, err := answertest.Collect(src, answertest.Options{})
				require.NoError(t, err)
				require.Nil(t, problem)
				choice := gjson.GetBytes(body, "choices.0")
				require.Equal(t, tc.want, want{
					choice.Get("message.content").Str, choice.Get("message.reasoning_content").Str, choice.Get("finish_reason").Str,
					int(choice.Get("message.tool_calls.#").Int()), int(choice.Get("message.images.#").Int()),
				})
			}
		})
	}
	_, _, err := answertest.Relay(source(strings.NewReader(data(piece(``, "STOP"), piece(hello, "")))), answertest.Options{})
	require.ErrorIs(t, err, classify.ErrTruncated, "the text has no end of its own")
	_, problem, err := answertest.Relay(source(strings.NewReader(data(piece(``, "STOP"), piece(``, "MALFORMED_FUNCTION_CALL")))), answertest.Options{})
	require.NoError(t, err)
	require.Contains(t, string(problem), "MALFORMED")
}

// Citations that come with each piece are told once, each.
func TestCitationsOfPrematureStops(t *testing.T) {
	t.Parallel()
	piece := func(text, sources string) string {
		return `{"candidates":[{"content":{"parts":[{"text":"` + text + `"}]},"groundingMetadata":{"groundingChunks":[` + sources + `]},"finishReason":"STOP"}]}`
	}
	const a, b = `{"web":{"uri":"https://a.example"}}`, `{"web":{"uri":"https://b.example"}}`
	text := data(piece("x", a), piece("y", a), piece("z", a+","+b), piece("w", b))
	body, problem, err := answertest.Collect(source(strings.NewReader(text)), answertest.Options{})
	require.NoError(t, err)
	require.Nil(t, problem)
	require.Equal(t, `["https://a.example","https://b.example"]`, gjson.GetBytes(body, "choices.0.message.annotations.#.url_citation.url").Raw)
	require.Equal(t, "xyzw", gjson.GetBytes(body, "choices.0.message.content").Str)
}

// known counts do not fall back to zero, nor are they lost when the last event leaves them out.
func TestUsageThatFalls(t *testing.T) {
	t.Parallel()
	const first = `{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":5,"cachedContentTokenCount":2,"candidatesTokenCount":1,"totalTokenCount":6}}`
	for last, want := range map[string]string{
		`{"promptTokenCount":0,"candidatesTokenCount":9,"totalTokenCount":9}`: `[5,9,14,2]`,
		`{"promptTokenCount":5,"candidatesTokenCount":0,"totalTokenCount":5}`: `[5,1,6,2]`,
		`{"candidatesTokenCount":9,"thoughtsTokenCount":3}`:                   `[5,12,17,2]`,
		`{}`: `[5,1,6,2]`,
	} {
		out := events(t, strings.NewReader(data(first, `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":`+last+`}`)))
		usage := relay(t, out).body.Get("usage")
		require.Equal(t, want, usage.Get("[prompt_tokens,completion_tokens,total_tokens,prompt_tokens_details.cached_tokens]").Raw, last)
	}
}

const grounding = `{"webSearchQueries":["q"],"groundingChunks":[{"web":{"uri":"https://a.example","title":"A \"x\""}},{"web":{"uri":"https://b.example"}},{"retrieval":{}},{"web":{"uri":"https://c.example"}}],
	"groundingSupports":[{"segment":{"startIndex":3,"endIndex":8,"text":"등은"},"groundingChunkIndices":[0,1,2,9,-1]},{"segment":{"text":"not there"},"groundingChunkIndices":[0]},{"segment":{"endIndex":3},"groundingChunkIndices":[0]}]}`

func TestGrounding(t *testing.T) {
	t.Parallel()
	const want = `[{"type":"url_citation","url_citation":{"start_index":2,"end_index":4,"title":"A \"x\"","url":"https://a.example"}},` +
		`{"type":"url_citation","url_citation":{"start_index":2,"end_index":4,"title":"","url":"https://b.example"}},` +
		`{"type":"url_citation","url_citation":{"start_index":0,"end_index":0,"title":"","url":"https://c.example"}}]`
	answer := `{"candidates":[{"content":{"parts":[{"text":"이 "},{"text":"등은 녹색"}]},"groundingMetadata":` + grounding + `,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`
	pieces := []string{
		`{"candidates":[{"content":{"parts":[{"text":"이 등"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"은 녹색"}]},"groundingMetadata":{}}]}`,
		`{"candidates":[{"groundingMetadata":` + strings.ReplaceAll(grounding, "\n", "") + `,"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`,
	}
	for name, body := range map[string]gjson.Result{
		"whole":  gjson.Parse(completion(answer)),
		"stream": relay(t, events(t, strings.NewReader(data(pieces...)))).body,
	} {
		require.Equal(t, want, body.Get("choices.0.message.annotations").Raw, name)
		require.Equal(t, "q", body.Get("usage.grounding.webSearchQueries.0").Str, name)
		require.Equal(t, "이 등은 녹색", body.Get("choices.0.message.content").Str, name)
	}

	many := `{"groundingChunks":[` + strings.Repeat(`{"web":{"uri":"https://a.example"}},`, 999) + `{}]}`
	body := completion(`{"candidates":[{"groundingMetadata":` + many + `,"finishReason":"STOP"}]}`)
	require.Len(t, gjson.Get(body, "choices.0.message.annotations").Array(), 256)
}

// STR-14: candidates are told apart, and the stream is complete when all of them are.
func TestCandidates(t *testing.T) {
	t.Parallel()
	first := `{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"index":1,"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]}}]}`
	second := `{"candidates":[{"index":1,"content":{"parts":[{"functionCall":{"name":"g"}}]},"finishReason":"STOP"}]}`
	third := `{"candidates":[{"content":{"parts":[{"text":"b"}]},"finishReason":"STOP"},{"index":1,"content":{"parts":[{"text":"too late"}]}},{"index":99}]}`
	r := relay(t, events(t, strings.NewReader(data(first, second, third))))
	require.NoError(t, r.err)
	require.Equal(t, `["ab",null]`, r.body.Get("choices.#.message.content").Raw)
	require.Equal(t, `["f","g"]`, r.body.Get("choices.1.message.tool_calls.#.function.name").Raw)
	require.Equal(t, `["stop","tool_calls"]`, r.body.Get("choices.#.finish_reason").Raw)

	require.NotContains(t, events(t, strings.NewReader(data(first, second))), openai.Done)
}

// Ids of calls are made up where there are none, and never twice the same.
func TestCallsWithoutID(t *testing.T) {
	t.Parallel()
	answer := native(`{"functionCall":{"name":"f"}},{"functionCall":{"id":"","name":"f"}}`, "STOP")
	for _, calls := range []gjson.Result{
		gjson.Get(completion(answer), "choices.0.message.tool_calls"), relay(t, events(t, strings.NewReader(data(answer)))).body.Get("choices.0.message.tool_calls"),
	} {
		a, b := calls.Get("0.id").Str, calls.Get("1.id").Str
		require.Regexp(t, `^call_[a-z2-7]{26}$`, a)
		require.NotEqual(t, a, b)
	}
}

func TestHead(t *testing.T) {
	t.Parallel()
	body := gjson.Parse(completion(native(``, "STOP")))
	require.Equal(t, "r1", body.Get("id").Str)
	require.Equal(t, "gamma", body.Get("model").Str)
	require.Equal(t, "chat.completion", body.Get("object").Str)
	require.Positive(t, body.Get("created").Int())
	require.Regexp(t, `^chatcmpl-`, gjson.Get(completion(`{"candidates":[{"finishReason":"STOP"}],"responseId":"`+strings.Repeat("x", 2000)+`"}`), "id").Str)

	out := events(t, strings.NewReader(data(native(`{"text":"a"}`, ""), `{"candidates":[{"finishReason":"STOP"}],"modelVersion":"other","responseId":"r2"}`)))
	require.Equal(t, strings.Count(out, "data: {"), strings.Count(out, `{"id":"r1","object":"chat.completion.chunk"`))
}

// Errors pass as they came, in every form in which they come, and nothing looks like the end of an answer after them.
func TestErrors(t *testing.T) {
	t.Parallel()
	const problem = `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`
	answer := data(native(`{"text":"a"}`, ""))
	for name, c := range map[string]struct{ in, want string }{
		"event":              {data(problem), data(problem)},
		"named event":        {"event: error\ndata: {}\n\n", data(`{"error":{}}`)},
		"array":              {data("[" + problem + "]"), data("[" + problem + "]")},
		"no JSON":            {"data: oops\n\n", "data: oops\n\n"},
		"bare line":          {problem + "\n", data(problem)},
		"bare line, cut off": {problem, data(problem)},
		"bare lines":         {strings.ReplaceAll(problem, ",", ",\n") + "\n\n", data(strings.ReplaceAll(problem, ",", ", "))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, events(t, strings.NewReader(c.in)))
			out := events(t, strings.NewReader(answer+c.in))
			require.True(t, strings.HasSuffix(out, c.want), out)
			out = events(t, strings.NewReader(data(native(`{"text":"a"}`, "STOP"))+c.in))
			require.NotContains(t, out, "[DONE]")
			if name != "no JSON" && name != "named event" {
				require.Equal(t, classify.Upstream, relay(t, c.want).problem)
			}
			require.Equal(t, problem, completion(problem))
		})
	}
}

// A cut stream just ends: the reader after it sees that there is no finish reason.
func TestCutStreams(t *testing.T) { // STR-02, SSE-10
	t.Parallel()
	answer := data(native(`{"text":"a"}`, ""))
	for _, cut := range []string{"", "data: {\"candi", ": comment\n\n", "data:\n\n", "\n", "data: [DONE]\n\n"} {
		out := events(t, strings.NewReader(answer+cut))
		require.NotContains(t, out, "[DONE]")
		require.ErrorIs(t, relay(t, out).err, classify.ErrTruncated)
	}
	out := events(t, strings.NewReader(answer+strings.TrimSpace(data(native(`{"text":"b"}`, "STOP")))))
	require.Equal(t, "ab", relay(t, out).body.Get("choices.0.message.content").Str, "the last event needs no blank line")

	broken := errors.New("connection reset")
	_, err := answertest.Text(source(io.MultiReader(strings.NewReader(data(native(``, "STOP"))), iotest.ErrReader(broken))))
	require.ErrorIs(t, err, broken)
	require.Empty(t, events(t, strings.NewReader("")))
	require.Equal(t, ": ping\n\n", events(t, strings.NewReader(": ping\n\n")), "signs of life pass")
}

func TestBlockedLater(t *testing.T) {
	t.Parallel()
	r := relay(t, events(t, strings.NewReader(data(native(`{"text":"a"}`, ""), `{"promptFeedback":{"blockReason":"SAFETY"}}`))))
	require.NoError(t, r.err)
	require.Equal(t, "content_filter", r.body.Get("choices.0.finish_reason").Str)
}

// SSE-07: large events pass whole, and what is larger than the limit is an error.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	image := strings.Repeat("A", 5<<20)
	r := relay(t, events(t, strings.NewReader(data(native(`{"inlineData":{"mimeType":"image/png","data":"`+image+`"}}`, "STOP")))))
	require.NoError(t, r.err)
	require.Len(t, r.body.Get("choices.0.message.images.0.image_url.url").Str, len("data:image/png;base64,")+len(image))

	_, err := answertest.Text(source(strings.NewReader("data: " + strings.Repeat("a", openai.DefaultMaxEvent+1))))
	require.ErrorIs(t, err, openai.ErrEventTooLarge)
}

func TestNoAnswers(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, ` `, `x`, `[]`, `{}`, `{"candidates":[]}`, `{"candidates":{}}`, `{"usageMetadata":{}}`, `{"promptFeedback":{"blockReason":""}}`, `<html>`, `{"candidates":[`} {
		require.Equal(t, body, completion(body))
	}
}
