package prompt_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/agent/prompt"
	"hydrallm/shared/openai"
)

func read(t *testing.T, body string) prompt.Prompt {
	t.Helper()
	p, err := prompt.Read([]byte(body))
	require.NoError(t, err)
	return p
}

// the whole conversation, each turn with its role.
func TestConversation(t *testing.T) {
	t.Parallel()
	p := read(t, `{"model":"vendor/xi-1","tool_choice":"auto","tools":[{"type":"function","function":{"name":"get_time"}}],"messages":[
		{"role":"system","content":"Be brief."},
		{"role":"user","name":"anna","content":"What time is it in \u00c5lesund?"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_time","arguments":"{\"city\":\"\u00c5lesund\"}"}},
			{"id":"call_2","type":"custom","custom":{"name":"note","input":"asked"}}]},
		{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"12:00"},{"type":"text","text":"CET"}]},
		{"role":"assistant","content":[{"type":"refusal","refusal":"I won't say."}]},
		{"role":"developer","content":[{"type":"text","text":"Say it."}]},
		{"role":"function","name":"old","content":"x"},
		{"role":"user","content":{"type":"text","text":"So?"}}]}`)
	require.Equal(t, "vendor/xi-1", p.Model)
	require.Equal(t, "Be brief.\n\nSay it.", p.System)
	require.Equal(t, `This is a conversation so far, its oldest message first.

[User anna]
What time is it in Ålesund?

[Assistant]
(called the tool get_time with {"city":"Ålesund"})

(called the tool note with asked)

[Result of the tool get_time]
12:00

CET

[Assistant]
I won't say.

[Result of the tool old]
x

[User]
So?

Write the next message of the assistant, and nothing else.`, p.Text())
	require.Contains(t, p.Whole(), "first.\n\n[Instructions]\nBe brief.\n\nSay it.\n\n[User anna]\n")
}

func TestShortConversations(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"messages":[{"role":"user","content":"hi"}]}`: "hi",
		`{"prompt":"hi"}`: "hi",
		`{}`:              "",
		`{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`: "This is a conversation so far, its oldest message " +
			"first.\n\n[User]\na\n\n[Assistant]\nb\n\nGo on with the last message of the assistant where it ends. Say nothing else.",
	} {
		p := read(t, body)
		require.Equal(t, want, p.Text())
		require.Equal(t, want, p.Whole())
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	p := read(t, `{"messages":[
		{"role":"user","content":[{"type":"text","text":"Look:"},{"type":"image_url","image_url":{"url":"data:image/PNG;base64,aGk="}}]},
		{"role":"user","content":[{"type":"image_url","image_url":"DATA:image/jpeg;base64,aGk="},
			{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}},
			{"type":"file","file":{"filename":"../../etc/a:b.pdf","file_data":"data:application/pdf;base64,aGk="}}]}]}`)
	require.Equal(t, []prompt.File{
		{Type: "image/png", Name: "image", URL: "data:image/PNG;base64,aGk="},
		{Type: "image/jpeg", Name: "image", URL: "DATA:image/jpeg;base64,aGk="},
		{Type: "audio/mp3", Name: "audio", URL: "data:audio/mp3;base64,aGk="},
		{Type: "application/pdf", Name: "ab.pdf", URL: "data:application/pdf;base64,aGk="},
	}, p.Files)
	require.Contains(t, p.Text(), "[User]\nLook:\n\n(attachment 1: image)\n\n[User]\n(attachment 2: image)\n\n(attachment 3: audio)\n\n(attachment 4: ab.pdf)")
}

// An agent would read a file of its own machine, or of the network that it is in, for whoever names it.
func TestRefusals(t *testing.T) {
	t.Parallel()
	image := func(url string) string {
		return `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + url + `"}}]}]}`
	}
	for body, param := range map[string]string{
		image("file:///etc/passwd"):      "messages[0].content[0]",
		image("http://127.0.0.1/secret"): "messages[0].content[0]",
		image("data:image/png,plain"):    "messages[0].content[0]",
		image("data:;base64,aGk="):       "messages[0].content[0]",
		image(""):                        "messages[0].content[0]",
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"f1"}}]}]}`:          "messages[0].content[0]",
		`{"messages":[{"role":"user","content":"a"},{"role":"user","content":{"type":"video_url"}}]}`: "messages[1].content",
		`{"tool_choice":"required","messages":[]}`:                                                    "tool_choice",
		`{"tool_choice":{"type":"function","function":{"name":"f"}},"messages":[]}`:                   "tool_choice",
		`{"messages":`: "",
	} {
		_, err := prompt.Read([]byte(body))
		var refused *openai.RequestError
		require.ErrorAs(t, err, &refused, body)
		require.Equal(t, param, refused.Param, body)
		require.NotEmpty(t, refused.Code)
	}
}

// No text of a message is lost, whatever it is.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"system","content":"a"},{"role":"user","content":[{"type":"text","text":"b"}]}]}`))
	f.Add([]byte(`{"messages":[{"role":5,"content":{"type":"text","text":"\ud800"}},[],null,"x"]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","tool_calls":[5,{"function":{}}],"function_call":{"name":"f"}},{"role":"tool"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := prompt.Read(body)
		if err != nil || !utf8.Valid(body) {
			return
		}
		for _, m := range gjson.GetBytes(body, "messages").Array() {
			if text := m.Get("content"); text.Type == gjson.String && m.IsObject() {
				require.Contains(t, p.Whole(), text.Str)
			}
		}
		for _, file := range p.Files {
			require.True(t, strings.EqualFold("data:", file.URL[:5]))
			require.NotContains(t, file.Name, "/")
		}
	})
}
