package responses_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface"
	"hydrallm/shared/surface/responses"
)

// what stages want to know is found in the body.
func TestScan(t *testing.T) {
	t.Parallel()
	var r contract.Request
	form := surface.FormOf(contract.SurfaceResponses)
	require.NoError(t, form.Scan([]byte(`{"model":"m","stream":true,"background":true,"previous_response_id":"resp_1","session_id":"s","web_fetch":"https://x","has_search":true,`+
		`"tools":[{"type":"function","name":"f"}],"max_output_tokens":100,"input":[{"type":"item_reference","id":"i"},{"role":"user","content":[{"type":"input_text","text":"hello"},{"type":"input_image","image_url":"u"}]}]}`), &r))
	require.Equal(t, contract.Request{
		Model: "m", Stream: true, IncludeUsage: true, Store: true, Background: true, Previous: "resp_1", References: true, SessionID: "s",
		Web: contract.Web{Search: true, Fetch: "https://x"}, Traits: contract.Traits{Tokens: 357, Images: true, Tools: true, UserText: true},
	}, r)
	r = contract.Request{}
	require.NoError(t, form.Scan([]byte(`{"store":false,"previous_response_id":"resp_1","input":[]}`), &r), "a response may be asked to go on")
	require.False(t, r.Store)
}

// the conversation is taken out of a body and put into it again.
func TestMessages(t *testing.T) {
	t.Parallel()
	form := responses.Form{}
	body := []byte(`{"model":"m","instructions":"i","input":[{"type":"additional_tools","tools":[{"type":"function","name":"g"}]},{"role":"user","content":"q"},{"type":"reasoning","id":"r"},{"role":"assistant","content":"x"},` +
		`{"type":"custom_tool_call","call_id":"1","name":"f","input":"z"},{"type":"custom_tool_call_output","call_id":"1","output":[{"type":"input_image","image_url":"u"}]}],"user":"me"}`)
	list, err := form.Messages(body)
	require.NoError(t, err)
	require.Len(t, list, 4)
	require.Equal(t, []bool{false, false, false, true}, []bool{list[0].Within, list[1].Within, list[2].Within, list[3].Within})
	require.Equal(t, `[{"type":"reasoning","id":"r"},{"role":"assistant","content":"x"},{"type":"custom_tool_call","call_id":"1","name":"f","input":"z"}]`, string(list[1].Original))
	same := form.WithMessages(body, list)
	require.Equal(t, chatOf(t, string(body)), chatOf(t, string(same)))
	require.Contains(t, string(same), `"user":"me"`)

	for i := range list { // as another surface would have them
		list[i] = contract.Message{Body: list[i].Body}
	}
	require.Equal(t, chatOf(t, string(body)), chatOf(t, string(form.WithMessages(body, list))))

	const web = `{"role":"system","name":"web_context","content":"w"}`
	require.Equal(t, "uq a[] aw[] un", shorthand(chatOf(t, string(form.WithContext([]byte(`{"input":[{"role":"user","content":"q"},{"role":"assistant","content":""},{"role":"user","content":"n"}]}`), []byte(web))))))
	named := form.WithContext([]byte(`{"input":"q"}`), []byte(web))
	require.Contains(t, chatOf(t, string(named)), web, "it keeps its name")
	require.Contains(t, string(named), `"name":"web_context"`)
	require.Equal(t, "aw[] uq", shorthand(chatOf(t, string(form.WithContext([]byte(`{"input":"q"}`), []byte(web))))))
}

// results whose calls are in the history of a session are results to every surface, and what they hold beside text stands behind all of them.
func TestResultsOfASession(t *testing.T) {
	t.Parallel()
	form := responses.Form{}
	body := []byte(`{"model":"m","input":[{"type":"function_call_output","call_id":"2","output":[{"type":"input_text","text":"x"},{"type":"input_image","image_url":"u"}]},` +
		`{"type":"custom_tool_call_output","call_id":"1","output":"y"},{"role":"user","content":"and?"}]}`)
	list, err := form.Messages(body)
	require.NoError(t, err)
	said := make([]string, len(list))
	for i := range list {
		said[i] = string(list[i].Body)
	}
	require.Equal(t, []string{
		`{"role":"tool","tool_call_id":"2","content":"x"}`, `{"role":"tool","tool_call_id":"1","content":"y"}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"u"}}]}`, `{"role":"user","content":"and?"}`,
	}, said)
	require.Equal(t, `[{"type":"custom_tool_call_output","call_id":"1","output":"y"}]`, string(list[1].Original))
	require.True(t, list[2].Within)
	require.Equal(t, chatOf(t, string(body)), chatOf(t, string(form.WithMessages(body, list))), "without its session, it is what the user says")
}

// whatever a session has of other surfaces can be read here.
func TestHistoryOfOtherSurfaces(t *testing.T) {
	t.Parallel()
	var list []contract.Message
	for _, m := range []string{
		`{"role":"user","content":[{"type":"text","text":"q"},{"type":"new","x":1},{"type":"image_url"},{"type":"image_url","image_url":{"url":"u"}}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"custom","custom":{"name":"c","input":"raw"}}]}`, `{"role":"tool","tool_call_id":"1","content":[{"type":"new"},{"type":"text","text":"r"}]}`,
		`{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"t"}]},{"type":"text","text":"a"}]}`, `{"role":"user","content":"q"}`,
		`{"role":"assistant","content":null,"refusal":"no"}`, `{"role":"user","content":"q"}`,
	} {
		list = append(list, contract.Message{Body: []byte(m)})
	}
	body := responses.Form{}.WithMessages([]byte(`{"model":"m","input":"x"}`), list)
	chat, err := responses.Form{}.Chat(body)
	require.NoError(t, err, string(body))
	require.JSONEq(t, `[{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"[new]"},{"type":"text","text":"[image_url]"},{"type":"image_url","image_url":{"url":"u"}}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"c","arguments":"{\"input\":\"raw\"}"}}]},
		{"role":"tool","tool_call_id":"1","content":"[new]\n\nr"},{"role":"assistant","content":"a"},{"role":"user","content":"q"},{"role":"assistant","content":"no"},
		{"role":"user","content":"q"}]`, string(rawjson.Get(chat, "messages")))
}

// an error is a body in OpenAI's form, or an event for which clients throw.
func TestErrors(t *testing.T) {
	t.Parallel()
	errs := surface.ErrorsOf(contract.SurfaceResponses)
	f := &fault.Fault{Kind: fault.Failed, Message: "no \"one\"\n"}
	body := errs.AppendBody(nil, f, "rid")
	require.Equal(t, string(surface.ErrorsOf(contract.SurfaceChat).AppendBody(nil, f, "rid")), string(body))
	event := string(errs.AppendEvent(nil, f))
	require.Equal(t, event, string(errs.AppendEventOf(nil, body)))
	data, ok := strings.CutPrefix(event, "event: error\ndata: ")
	require.True(t, ok)
	require.True(t, strings.HasSuffix(data, "}\n\n"))
	require.JSONEq(t, `{"type":"error","code":"all_upstreams_failed","message":"no \"one\"\n","param":null,"sequence_number":0,`+
		`"error":{"message":"no \"one\"\n","type":"service_unavailable","param":null,"code":"all_upstreams_failed"}}`, data)
}

// Whatever comes, a request is refused or becomes one that a chat provider can read, and its conversation survives being taken out.
func FuzzRead(f *testing.F) {
	for _, line := range []string{"uq ax c1 c2 o1 o2 un", "uq o1 c1 c1 o1", "r c1 un o1", ""} {
		f.Add(`{"model":"m","input":` + words(line) + `}`)
	}
	f.Add(`{"input":"q","instructions":"i","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"c"}]}],"tool_choice":{"type":"custom","name":"c"}}`)
	f.Add(`{"input":[{"type":"custom_tool_call","id":"1","name":"c","input":{}},{"type":"custom_tool_call_output","call_id":"1","output":[{"type":"input_image","image_url":"u"},"t"]}],"text":{"format":{"type":"json_schema"}}}`)
	f.Add(`{"input":[{"type":"item_reference","id":"x"},{"type":"additional_tools","tools":null}],"include":["reasoning.encrypted_content"]}`)
	f.Fuzz(func(t *testing.T, body string) {
		form := responses.Form{}
		read, err := responses.Read([]byte(body))
		if err != nil {
			var bad *openai.RequestError
			require.ErrorAs(t, err, &bad)
			require.Error(t, form.Scan([]byte(body), &contract.Request{}))
			return
		}
		require.True(t, json.Valid(read.Chat()), string(read.Chat()))
		require.True(t, json.Valid(read.Items()))
		asked := map[string]bool{}
		messages := rawjson.Get(read.Chat(), "messages")
		for span := range rawjson.Elements(messages) { // each result follows its call
			m := span.Of(messages)
			if id := rawjson.Text(rawjson.Get(m, "tool_call_id")); rawjson.Is(rawjson.Get(m, "role"), "tool") {
				require.True(t, asked[id], "%s in %s", id, messages)
				delete(asked, id)
				continue
			}
			require.Empty(t, asked)
			calls := rawjson.Get(m, "tool_calls")
			for call := range rawjson.Elements(calls) {
				id := rawjson.Text(rawjson.Get(call.Of(calls), "id"))
				require.False(t, asked[id])
				asked[id] = true
			}
		}
		require.Empty(t, asked)
		if form.Scan([]byte(body), &contract.Request{}) != nil {
			return
		}
		list, err := form.Messages([]byte(body))
		require.NoError(t, err)
		again, err := responses.Read(form.WithMessages([]byte(body), list))
		require.NoError(t, err)
		require.Equal(t, string(read.Chat()), string(again.Chat()))
	})
}
