package stream_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/stream"
)

const (
	thoughtPart = `{"type":"thinking","thinking":[{"type":"text","text":"a\u00e9"},{"type":"text","text":"b"}]}`
	textPart    = `{"type":"text","text":"c\""}`
)

// Contents in parts become text and thought for who does not know the upstream; for others they are left alone (R-225, C-22).
func TestContentInParts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		delta string
		opts  options
		want  string
	}{
		"text and thought":     {`{"content":[` + thoughtPart + `,` + textPart + `]}`, options{Model: "m"}, `{"content":"c\"","reasoning_content":"a\u00e9b"}`},
		"with the role":        {`{"role":"assistant","content":[` + thoughtPart + `]}`, options{Model: "m"}, `{"role":"assistant","content":"","reasoning_content":"a\u00e9b"}`},
		"no role, no text":     {`{"content":[` + thoughtPart + `]}`, options{Model: "m"}, `{"reasoning_content":"a\u00e9b"}`},
		"a thought as text":    {`{"content":[{"type":"thinking","thinking":"x"}]}`, options{Model: "m"}, `{"reasoning_content":"x"}`},
		"behind other thought": {`{"reasoning":"y","content":[{"type":"thinking","thinking":"x"}]}`, options{Model: "m"}, `{"reasoning_content":"yx"}`},
		"thoughts are removed": {`{"content":[` + thoughtPart + `,` + textPart + `]}`, options{Model: "m", Think: stream.ThinkStrip}, `{"content":"c\""}`},
		"another kind of part": {`{"content":[` + textPart + `,{"type":"reference","reference_ids":[1]},` + thoughtPart + `]}`, options{Model: "m"}, `{"content":"c\"","reasoning_content":"a\u00e9b"}`},
		"only other kinds":     {`{"role":"assistant","content":[{"type":"reference","reference_ids":[1]},7,null,[],{"text":[[],7,{}]}]}`, options{Model: "m"}, `{"role":"assistant","content":""}`},
		"kinds of others":      {`{"content":["a",{"text":"b"},{"type":"output_text","text":"c"},{"type":"reasoning","text":"d"},{"type":"reasoning","reasoning":"e"}]}`, options{Model: "m"}, `{"content":"abc","reasoning_content":"de"}`},
		"a configured model":   {`{"content":[` + thoughtPart + `]}`, options{}, ""},
		"its tags are split":   {`{"content":[` + thoughtPart + `]}`, options{Think: stream.ThinkSplit}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := passed(t, delta(tc.delta)+finish("stop")+doneEvent, tc.opts)
			want := tc.want
			if want == "" {
				want = tc.delta
			}
			require.Equal(t, delta(want)+finish("stop"), out)
		})
	}
}

// A whole answer in parts, and a stream that becomes one, whoever asks for it.
func TestWholeContentInParts(t *testing.T) {
	t.Parallel()
	body := `{"id":"c1","object":"chat.completion","created":1,"model":"x","choices":[{"index":0,"message":{"role":"assistant","content":[` + thoughtPart +
		`,{"type":"reference","reference_ids":[1]},` + textPart + `]},"finish_reason":"stop"}]}`
	check := func(got []byte) {
		require.True(t, gjson.ValidBytes(got), "%s", got)
		message := gjson.GetBytes(got, "choices.0.message")
		require.Equal(t, `c"`, message.Get("content").Str)
		require.Equal(t, "aéb", message.Get("reasoning_content").Str)
	}
	check(answertest.Completion([]byte(body), options{Model: "m"}))
	check(collect(t, delta(`{"role":"assistant","content":[`+thoughtPart+`]}`)+delta(`{"content":[{"type":"reference"}]}`)+delta(`{"content":[`+textPart+`]}`)+finish("stop")+doneEvent))
	require.Equal(t, body, string(answertest.Completion([]byte(body), options{})))
}

// MiniMax: what reasoning_details say, told again from the beginning or not, is one thought (provider facts 3.10).
func TestDetailedReasoning(t *testing.T) {
	t.Parallel()
	detail := func(text string) string {
		return `"reasoning_details":[{"type":"reasoning.text","text":"` + text + `"}]`
	}
	for name, tc := range map[string]struct {
		deltas []string
		want   string
	}{
		"running totals":       {[]string{detail("a"), detail("ab"), detail("abc")}, "abc"},
		"pieces":               {[]string{detail("a"), detail("b"), detail("c")}, "abc"},
		"something in between": {[]string{detail("a"), `"content":"x"`, detail("ab")}, "ab"},
		"stated beside it":     {[]string{detail("a") + `,"reasoning_content":"a"`, detail("b") + `,"reasoning":"b"`}, "ab"},
		"stated before it":     {[]string{`"reasoning_content":"a"`, `"reasoning_content":"b"`, detail("ab")}, "ab"},
		"nothing readable":     {[]string{`"reasoning_details":[{"type":"reasoning.encrypted","data":"x"}]`, `"reasoning_details":"x"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events := []string{delta(`{"role":"assistant","content":""}`)}
			for _, d := range tc.deltas {
				events = append(events, delta("{"+d+"}"))
			}
			events = append(events, content("end"), finish("stop"), doneEvent)
			out, problem, err := pass(strings.Join(events, ""), options{Model: "m"})
			require.NoError(t, err)
			require.Nil(t, problem)
			require.Equal(t, tc.want, readStrictly(t, out).reasoning[0])
		})
	}
}

// What vendors report on themselves is not for the clients of routed requests, whose usage says the same; a configured model's answer keeps it.
func TestPrivateMembers(t *testing.T) {
	t.Parallel()
	text := `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],` +
		`"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}},"time_info":{"total_time":1}}` + "\n\n" + doneEvent
	out, _, err := pass(text, options{Model: "m", IncludeUsage: true})
	require.NoError(t, err)
	require.NotContains(t, out, "x_groq")
	require.NotContains(t, out, "time_info")
	require.Contains(t, out, `"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`)
	out, _, err = pass(text, options{})
	require.NoError(t, err)
	require.Equal(t, text, out)
}
