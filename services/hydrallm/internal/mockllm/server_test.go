package mockllm_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/mockllm"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/testkit/goldentest"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var _ lifecycle.Service = (*mockllm.Server)(nil)

func start(t *testing.T, delay time.Duration) *mockllm.Server {
	t.Helper()
	s := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: delay})
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s
}

func call(t *testing.T, s *mockllm.Server, method, path, body string) (status int, kind, answer string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.Addr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	data, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(data)
}

// chat is a request to the mock with a message of the user and other members.
func chat(text string, members ...string) string {
	all := append([]string{`{"model":"mock"`, `"messages":[{"role":"user","content":` + strconv.Quote(text) + `}]`}, members...)
	return strings.Join(all, ",") + "}"
}

const (
	streamed   = `"stream":true`
	withUsage  = `"stream":true,"stream_options":{"include_usage":true}`
	twoTools   = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city","unit"],"additionalProperties":false}}},{"type":"function","function":{"name":"get_time"}}]`
	withSchema = `"response_format":{"type":"json_schema","json_schema":{"name":"person","strict":true,"schema":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}}}`
)

// later is a conversation in which the tools have answered.
func later(text string, members ...string) string {
	called := `{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{}"}},{"id":"call_2","type":"function","function":{"name":"get_time","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"call_2","content":"noon"},{"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"21 degrees"}]}`
	return strings.Replace(chat(text, members...), "}]", "},"+called+"]", 1)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	const completions, embeddings = "/v1/chat/completions", "/v1/embeddings"
	tests := map[string]struct {
		path, body string
		status     int
	}{
		"plain":           {completions, `{"model":"mock","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi there"}]}`, 200},
		"parts":           {completions, `{"model":"mock","messages":[{"role":"user","content":[{"type":"text","text":"one"},{"type":"image_url"},{"type":"text","text":"two"}]}]}`, 200},
		"no user":         {completions, `{"model":"mock","messages":[{"role":"system","content":"be kind"}]}`, 200},
		"stream":          {completions, chat("hi", streamed), 200},
		"stream usage":    {completions, chat("hi", withUsage), 200},
		"say":             {completions, chat("Some words first.\nSay: one\nsay two"), 200},
		"say in parts":    {completions, `{"model":"mock","messages":[{"role":"user","content":[{"type":"text","text":"say what the program says"},{"type":"text","text":"say <what> the user says"}]}]}`, 200},
		"write":           {completions, chat("Write 3 words about rain."), 200},
		"ordinary":        {completions, chat("Call me.\nWait, what?\nFail better.\nWriting is hard.\nFinish it.\nUsage?\nThen we go.\nSayonara"), 200},
		"think":           {completions, chat("Think about it"), 200},
		"think stream":    {completions, chat("think", withUsage), 200},
		"think in tags":   {completions, chat("think in tags\nsay 42", streamed), 200},
		"effort":          {completions, chat("say 42", `"reasoning_effort":"low"`), 200},
		"no effort":       {completions, chat("say 42", `"reasoning_effort":"none"`), 200},
		"call":            {completions, chat("Call a tool", twoTools), 200},
		"call named":      {completions, chat("call the tool get_time.", twoTools), 200},
		"call with":       {completions, chat("say I'll look\ncall get_weather with {\"city\": \"서울\"}", twoTools, streamed), 200},
		"call all":        {completions, chat("call all tools", twoTools), 200},
		"call stream":     {completions, chat("call all tools", twoTools, withUsage), 200},
		"one after one":   {completions, chat("call all tools", twoTools, `"parallel_tool_calls":false`), 200},
		"the other one":   {completions, later("call get_time\ncall get_weather {\"city\":\"Rome\"}", twoTools, `"parallel_tool_calls":false`), 200},
		"no tools":        {completions, chat("call a tool"), 200},
		"none":            {completions, chat("call a tool", twoTools, `"tool_choice":"none"`), 200},
		"required":        {completions, chat("hi", twoTools, `"tool_choice":"required"`), 200},
		"named function":  {completions, chat("hi", twoTools, `"tool_choice":{"type":"function","function":{"name":"get_time"}}`), 200},
		"results":         {completions, later("call all tools", twoTools), 200},
		"results stream":  {completions, later("What is it like?", twoTools, streamed), 200},
		"results after":   {completions, later("hi", twoTools, `"tool_choice":"required"`), 200},
		"then":            {completions, later("call a tool\nthen call get_time\nthen\nsay done", twoTools), 200},
		"then done":       {completions, later("call a tool\nthen say done", twoTools), 200},
		"json object":     {completions, chat("hi", `"response_format":{"type":"json_object"}`), 200},
		"json schema":     {completions, chat("hi", withSchema), 200},
		"schema stream":   {completions, chat("hi", withSchema, streamed), 200},
		"schema results":  {completions, later("call all tools", twoTools, withSchema), 200},
		"refuse":          {completions, chat("refuse", withSchema), 200},
		"refuse stream":   {completions, chat("Refuse: not this.", streamed), 200},
		"two choices":     {completions, chat("call get_time\nsay wait", twoTools, streamed, `"n":2`), 200},
		"two whole":       {completions, chat("call get_time", twoTools, `"n":2`), 200},
		"length":          {completions, chat("write 5 words", `"max_tokens":2`), 200},
		"stop":            {completions, chat("say a b END c", `"stop":["END","b"]`), 200},
		"stop text":       {completions, chat("say a b END c", `"stop":"END"`), 200},
		"finish":          {completions, chat("finish content_filter", streamed), 200},
		"usage":           {completions, chat("usage 1000 and 200"), 200},
		"fail":            {completions, chat("fail 429 after 1500ms"), 429},
		"fail with":       {completions, chat("Fail with 500.", streamed), 500},
		"fail oddly":      {completions, chat("fail 418"), 418},
		"fail midway":     {completions, chat("fail midway", streamed), 200},
		"fail whole":      {completions, chat("fail midway"), 500},
		"unavailable":     {completions, `{"model":"unavailable","messages":[{"role":"user","content":"hi"}]}`, 503},
		"no model":        {completions, `{"model":"gpt","messages":[{"role":"user","content":"hi"}]}`, 404},
		"model missing":   {completions, `{"messages":[{"role":"user","content":"hi"}]}`, 400},
		"no messages":     {completions, `{"model":"mock"}`, 400},
		"orphan":          {completions, `{"model":"mock","messages":[{"role":"user","content":"hi"},{"role":"tool","tool_call_id":"x","content":"1"}]}`, 400},
		"unanswered":      {completions, `{"model":"mock","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"hi"}]}`, 400},
		"unanswered end":  {completions, `{"model":"mock","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`, 400},
		"schema missing":  {completions, chat("hi", `"response_format":{"type":"json_schema"}`), 400},
		"nameless tool":   {completions, chat("hi", `"tools":[{"type":"function"}]`), 400},
		"choice alone":    {completions, chat("hi", `"tool_choice":"auto"`), 400},
		"no choices":      {completions, chat("hi", `"n":0`), 400},
		"not JSON":        {completions, `{`, 400},
		"embed":           {embeddings, `{"model":"mock-embedding","input":"a b","dimensions":4}`, 200},
		"embed several":   {embeddings, `{"model":"mock-embedding","input":["a","A","b"],"dimensions":2,"encoding_format":"base64"}`, 200},
		"embed tokens":    {embeddings, `{"model":"mock-embedding","input":[1,2],"dimensions":2}`, 200},
		"embed lists":     {embeddings, `{"model":"mock-embedding","input":[[1,2],[3]],"dimensions":2}`, 200},
		"embed nothing":   {embeddings, `{"model":"mock-embedding","input":["a",""]}`, 400},
		"embed list":      {embeddings, `{"model":"mock-embedding","input":[]}`, 400},
		"embed object":    {embeddings, `{"model":"mock-embedding","input":{}}`, 400},
		"embed format":    {embeddings, `{"model":"mock-embedding","input":"a","encoding_format":"x"}`, 400},
		"embed size":      {embeddings, `{"model":"mock-embedding","input":"a","dimensions":0}`, 400},
		"embed chat":      {embeddings, `{"model":"mock","input":"a"}`, 404},
		"embed elsewhere": {embeddings, `{"model":"unavailable","input":"a"}`, 503},
		"text":            {"/v1/completions", `{"model":"mock","prompt":"hi there","logprobs":1}`, 200},
		"text several":    {"/v1/completions", `{"model":"mock","prompt":["say a","say b c"],"n":2,"echo":true}`, 200},
		"text tokens":     {"/v1/completions", `{"model":"mock","prompt":[1,2],"max_tokens":2}`, 200},
		"text stream":     {"/v1/completions", `{"model":"mock","prompt":"say a b END","stop":"END","stream":true,"stream_options":{"include_usage":true}}`, 200},
		"text suffix":     {"/v1/completions", `{"model":"mock","prompt":"def f(","suffix":"return x"}`, 200},
		"text fails":      {"/v1/completions", `{"model":"mock","prompt":"fail 429"}`, 429},
		"text no model":   {"/v1/completions", `{"model":"gpt","prompt":"hi"}`, 404},
		"text no prompt":  {"/v1/completions", `{"model":"mock"}`, 400},
		"moderate":        {"/v1/moderations", `{"model":"mock","input":["kind","violence"]}`, 200},
		"moderate parts":  {"/v1/moderations", `{"model":"mock","input":[{"type":"text","text":"violence"}]}`, 200},
		"moderate no":     {"/v1/moderations", `{"model":"unavailable","input":"x"}`, 503},
		"draw":            {"/v1/images/generations", `{"model":"mock","prompt":"a lamp","n":2}`, 200},
		"draw none":       {"/v1/images/generations", `{"model":"mock","prompt":"a lamp","n":0}`, 400},
		"draw elsewhere":  {"/v1/images/edits", `{"model":"gpt-image"}`, 404},
		"rank":            {"/v1/rerank", `{"model":"mock","query":"green lamp","documents":["red car",{"text":"a green lamp"},5]}`, 200},
		"models":          {"/v1/models", "", 200},
		"model":           {"/v1/models/mock-embedding", "", 200},
		"unknown model":   {"/v1/models/gpt", "", 404},
		"other route":     {"/v2", "", 404},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, 0)
			method, kind := http.MethodGet, "application/json"
			if tt.body != "" {
				method = http.MethodPost
			}
			if tt.status == 200 && strings.Contains(tt.body, streamed) {
				kind = "text/event-stream"
			}
			status, got, answer := call(t, s, method, tt.path, tt.body)
			require.Equal(t, tt.status, status)
			require.Equal(t, kind, got)
			goldentest.Compare(t, strings.ReplaceAll(name, " ", "-")+".txt", []byte(answer))
			_, _, again := call(t, s, method, tt.path, tt.body)
			require.Equal(t, answer, again, "the same question gets the same answer")
		})
	}
}

// The words come one by one, each when it is due.
func TestStreamTakesItsTime(t *testing.T) {
	t.Parallel()
	s := start(t, 5*time.Millisecond)
	begun := time.Now()
	_, _, answer := call(t, s, http.MethodPost, "/v1/chat/completions", `{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	words := strings.Count(answer, "data: ") - 3 // role, finish, [DONE]
	require.GreaterOrEqual(t, time.Since(begun), time.Duration(words)*5*time.Millisecond)
}

func TestStopCutsOffWhatDoesNotEnd(t *testing.T) {
	t.Parallel()
	s := mockllm.New(mockllm.Config{Listen: "127.0.0.1:0", Delay: time.Hour})
	require.NoError(t, s.Stop(t.Context()), "a server that never started can be stopped")
	require.NoError(t, s.Start(t.Context()))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.Addr().String()+"/v1/chat/completions",
		strings.NewReader(`{"model":"mock","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
	require.NoError(t, err)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.NoError(t, s.Stop(ctx))
	_, err = io.ReadAll(resp.Body)
	require.Error(t, err)
}
