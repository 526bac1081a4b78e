package prompt_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/prompt"
	"hydrallm/shared/contract"
)

// talk makes messages of a shorthand: "u" the user, "a" the assistant, "s" the system, "t" a tool result, "c" a call, "S" a summary; then what is said.
func talk(line string) (messages []prompt.Message) {
	for word := range strings.FieldsSeq(line) {
		text := word[1:]
		role := map[byte]string{'u': "user", 'a': "assistant", 's': "system", 'd': "developer", 't': "tool", 'c': "assistant", 'S': "system"}[word[0]]
		body := fmt.Sprintf(`{"role":%q,"content":%q}`, role, text)
		switch word[0] {
		case 'c':
			body = fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"f","arguments":"{}"}}]}`, text)
		case 't':
			body = fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"r"}`, text)
		}
		messages = append(messages, prompt.Message{Message: contract.Message{Body: []byte(body)}, Surface: contract.SurfaceChat, Summary: word[0] == 'S'})
	}
	return messages
}

func array(messages []prompt.Message) string {
	parts := make([]string, len(messages))
	for i, m := range messages {
		parts[i] = string(m.Body)
	}
	return "[" + strings.Join(parts, ",") + "]"
}

func assemble(t *testing.T, history []prompt.Message, body string) (whole string, fresh string) {
	t.Helper()
	r, err := prompt.Read(contract.SurfaceChat, []byte(body))
	require.NoError(t, err)
	p := r.Assemble(history)
	parts := make([]string, len(p.Fresh))
	for i, m := range p.Fresh {
		parts[i] = string(m.Body)
	}
	if p.Body == nil {
		require.Empty(t, history)
		p.Body = []byte(body)
	}
	require.True(t, json.Valid(p.Body), string(p.Body))
	return string(p.Body), "[" + strings.Join(parts, ",") + "]"
}

//
func TestAssemble(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ history, sent, want, fresh string }{
		"no history":                           {"", "u1", "u1", "u1"},
		"a new question":                       {"u1 a1", "u2", "u1 a1 u2", "u2"},
		"the same question again":              {"u1 a1", "u1", "u1 a1 u1", "u1"},
		"equal turns":                          {"uyes ayes uyes ayes", "uyes", "uyes ayes uyes ayes uyes", "uyes"},
		"equal turns, sent again":              {"uyes ayes uyes ayes", "uyes ayes uyes ayes uyes", "uyes ayes uyes ayes uyes", "uyes"},
		"equal turns, the end sent again":      {"uyes ayes uyes ayes uyes ayes", "uyes ayes uyes", "uyes ayes uyes ayes uyes ayes uyes", "uyes"},
		"the transcript":                       {"u1 a1 u2 a2", "u1 a1 u2 a2 u3", "u1 a1 u2 a2 u3", "u3"},
		"the end of it":                        {"u1 a1 u2 a2", "u2 a2 u3", "u1 a1 u2 a2 u3", "u3"},
		"the last answer":                      {"u1 a1", "a1 u2", "u1 a1 u2", "u2"},
		"its begin":                            {"u1 a1 u2 a2", "u1 a1 u3", "u1 a1 u2 a2 u3", "u3"},
		"with a hole":                          {"u1 a1 u2 a2 u3 a3", "u1 a1 u3 a3 u4", "u1 a1 u2 a2 u3 a3 u4", "u4"},
		"with more before it":                  {"u1 a1", "ahello u1 a1 u2", "ahello u1 a1 u2", "u2"},
		"with more in it":                      {"u1 a1 u2 a2", "u1 a1 uextra u2 a2 u3", "u1 a1 uextra u2 a2 u3", "u3"},
		"one that is not stored":               {"", "u1 a1 u2", "u1 a1 u2", "u2"},
		"one that is unknown":                  {"u1 a1", "u8 a8 u9", "u1 a1 u8 a8 u9", "u9"},
		"an unanswered question in it":         {"u1 a1", "u1 a1 ulost u2", "u1 a1 ulost u2", "ulost u2"},
		"a question that stands in both":       {"ucontinue a1", "ucontinue umore", "ucontinue a1 ucontinue umore", "ucontinue umore"},
		"results and a question":               {"u1 ca", "u1 ca ta u2", "u1 ca ta u2", "ta u2"},
		"system messages":                      {"u1 a1", "s1 s2 u2", "s1 s2 u1 a1 u2", "u2"},
		"a developer's":                        {"u1 a1", "d1 u2", "d1 u1 a1 u2", "u2"},
		"system messages and the transcript":   {"u1 a1", "s1 u1 a1 u2", "s1 u1 a1 u2", "u2"},
		"a system message inside of it":        {"u1 a1 u2 a2", "s1 u1 a1 smid u2 a2 u3", "s1 smid u1 a1 u2 a2 u3", "u3"},
		"a system message before the question": {"u1 a1", "u1 a1 slate u2", "u1 a1 slate u2", "u2"},
		"system messages only":                 {"u1 a1", "s1", "s1 u1 a1", ""},
		"a summary":                            {"Ssum u3 a3", "u4", "Ssum u3 a3 u4", "u4"},
		"a summary and the whole transcript":   {"Ssum u3 a3", "u1 a1 u2 a2 u3 a3 u4", "Ssum u3 a3 u4", "u4"},
		"the result of a tool":                 {"u1 cx", "tx", "u1 cx tx", "tx"},
		"the result and the transcript":        {"u1 cx", "u1 cx tx", "u1 cx tx", "tx"},
		"two results":                          {"u1 cx", "u1 cx tx tx", "u1 cx tx tx", "tx tx"},
		"results and words, nothing again":     {"u1 cx", "tx ty u2", "u1 cx tx ty u2", "tx ty u2"},
		"further results and words":            {"u1 cx tx", "ty u2", "u1 cx tx ty u2", "ty u2"},
		"results of an answered call":          {"u1 cx tx a1", "tx u2", "u1 cx tx a1 tx u2", "u2"},
		"a call that is not stored":            {"u1 a1", "u1 a1 u2 cx tx", "u1 a1 u2 cx tx", "u2 cx tx"},
		"an answer to go on from":              {"u1 a1", "u2 abegin", "u1 a1 u2 abegin", "u2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, fresh := assemble(t, talk(tt.history), `{"messages":`+array(talk(tt.sent))+`}`)
			require.Equal(t, `{"messages":`+array(talk(tt.want))+`}`, whole)
			require.Equal(t, array(talk(tt.fresh)), fresh)
		})
	}
}

// What clients leave out or write differently does not make another message of one; what it says does.
func TestWhatIsTheSameMessage(t *testing.T) {
	t.Parallel()
	stored := `{"role":"assistant","content":"The <b> 1.0\n","reasoning_content":"hm","refusal":null,"annotations":[],"x":{"y":1.0}}`
	for _, sent := range []string{
		stored, `{"role":"assistant","content":"The <b> 1.0"}`, `{"content":"The \u003cb> 1.0","role":"assistant"}`, `{"role":"assistant","content":[{"type":"text","text":"The <b> 1.0"}]}`,
	} {
		whole, _ := assemble(t, []prompt.Message{talk("u1")[0], {Message: contract.Message{Body: []byte(stored)}}}, `{"a":1.0, "messages" : [`+array(talk("u1"))[1:]+`}`)
		require.Equal(t, `{"a":1.0, "messages" : [`+string(talk("u1")[0].Body)+","+stored+","+string(talk("u1")[0].Body)+`]}`, whole, "only the messages change")
		body := `{"messages":[{"role":"user","content":"1"},` + sent + `,{"role":"user","content":"2"}]}`
		whole, _ = assemble(t, []prompt.Message{talk("u1")[0], {Message: contract.Message{Body: []byte(stored)}}}, body)
		require.Equal(t, `{"messages":[{"role":"user","content":"1"},`+stored+`,{"role":"user","content":"2"}]}`, whole)
	}
	for _, sent := range []string{
		`{"role":"assistant","content":"The <b> 1"}`, `{"role":"user","content":"The <b> 1.0"}`,
		`{"role":"assistant","content":"The <b> 1.0","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"assistant","content":[{"type":"text","text":"The <b> 1.0"},{"type":"image_url","image_url":{"url":"data:,"}}]}`,
	} {
		whole, _ := assemble(t, []prompt.Message{talk("u1")[0], {Message: contract.Message{Body: []byte(stored)}}}, `{"messages":[{"role":"user","content":"1"},`+sent+`,{"role":"user","content":"2"}]}`)
		require.Contains(t, whole, stored)
		require.Contains(t, whole, sent)
	}
}

// a prompt is a message.
func TestPrompts(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"prompt":"q\u00e9"}`, `{"messages":[],"prompt":"q\u00e9"}`, `{"messages":null,"prompt":"q\u00e9"}`} {
		whole, fresh := assemble(t, talk("u1 a1"), body)
		require.Equal(t, `[{"role":"user","content":"q\u00e9"}]`, fresh)
		r, err := prompt.Read(contract.SurfaceChat, []byte(whole))
		require.NoError(t, err)
		again := r.Assemble(nil)
		require.Len(t, again.Fresh, 1)
		require.Contains(t, whole, `"messages":[{"role":"user","content":"1"},{"role":"assistant","content":"1"},{"role":"user","content":"q\u00e9"}]`)
	}
	_, err := prompt.Read(contract.SurfaceChat, []byte(`{}`))
	require.Error(t, err)
}

// Whatever a client sends: its last message stays last, nothing of the history and nothing that is new is lost, and the result can be read.
func FuzzAssemble(f *testing.F) {
	f.Add("u1 a1 u2 a2", "u1 a1 u2 a2 u3")
	f.Add("Ssum u3 a3", "s1 u2 a2 u3 a3 u4")
	f.Add("u1 cx tx a1", "u1 cx smid tx a1 uyes")
	known := regexp.MustCompile(`^[uasdtcS][a-z0-9]+$`)
	f.Fuzz(func(t *testing.T, stored, sent string) {
		valid := func(line string) string {
			var words []string
			for word := range strings.FieldsSeq(line) {
				if known.MatchString(word) && len(words) < 24 {
					words = append(words, word)
				}
			}
			return strings.Join(words, " ")
		}
		history, request := talk(valid(stored)), talk(valid(sent))
		if len(request) == 0 || len(history) == 0 {
			return
		}
		r, err := prompt.Read(contract.SurfaceChat, []byte(`{"messages":`+array(request)+`}`))
		if err != nil {
			return
		}
		p := r.Assemble(history)
		whole := string(p.Body)
		if _, err := prompt.Read(contract.SurfaceChat, p.Body); err != nil {
			t.Fatalf("%s: %v", whole, err)
		}
		at := 0
		for _, m := range history {
			i := strings.Index(whole[at:], string(m.Body))
			if i < 0 {
				t.Fatalf("%s is not there, or not in order, in %s", m.Body, whole)
			}
			at += i
		}
		if last := string(request[len(request)-1].Body); !strings.Contains(last, `"system"`) && !strings.Contains(last, `"developer"`) && !strings.Contains(whole[strings.LastIndex(whole, last):], last) {
			t.Fatalf("the last message is not in %s", whole)
		}
	})
}

// BenchmarkAssemble is a long history that the client sends again.
func BenchmarkAssemble(b *testing.B) {
	var words []string
	for i := range 200 {
		words = append(words, fmt.Sprintf("u%d", i), fmt.Sprintf("a%d", i))
	}
	history := talk(strings.Join(words, " "))
	body := []byte(`{"messages":` + array(talk(strings.Join(words, " ")+" unew")) + `}`)
	b.ReportAllocs()
	for b.Loop() {
		r, err := prompt.Read(contract.SurfaceChat, body)
		if err != nil {
			b.Fatal(err)
		}
		if p := r.Assemble(history); len(p.Fresh) != 1 {
			b.Fatal(len(p.Fresh))
		}
	}
}
