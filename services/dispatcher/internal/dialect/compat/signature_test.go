package compat_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/dialect/compat"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/testkit/fixtures"
)

// call is a tool call of the history, with further members, each after a comma.
func call(id, more string) string {
	return `{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}` + more + `}`
}

// step is a message of the assistant with tool calls.
func step(calls ...string) string {
	return `{"role":"assistant","tool_calls":[` + strings.Join(calls, ",") + `]}`
}

func signedBy(signature string) string {
	return `,"extra_content":{"google":{"thought_signature":"` + signature + `"}}`
}

const bypass = "skip_thought_signature_validator"

func gemini(model, messages string) string {
	return `{"model":"` + model + `","messages":[` + messages + `]}`
}

// Facts 3.3: a signature goes back onto its call; calls of others get the bypass where the model insists.
func TestInject(t *testing.T) {
	t.Parallel()
	s := compat.NewSignatures()
	s.Learn("known", "c2ln/+==")
	const g3, g2 = "models/gemini-3.8-flash", "gemini-2.5-pro"
	result := `{"role":"tool","tool_call_id":"known","content":"1"}`
	for name, tc := range map[string]struct{ in, out string }{
		"nothing to sign":             {gemini(g3, hi), ``},
		"known":                       {gemini(g3, hi+","+step(call("known", ""))), gemini(g3, hi+","+step(call("known", signedBy("c2ln/+=="))))},
		"known, of an older model":    {gemini(g2, hi+","+step(call("known", ""))), gemini(g2, hi+","+step(call("known", signedBy("c2ln/+=="))))},
		"known, in an earlier turn":   {gemini(g3, hi+","+step(call("known", ""))+","+result+","+hi), gemini(g3, hi+","+step(call("known", signedBy("c2ln/+==")))+","+result+","+hi)},
		"there already":               {gemini(g3, hi+","+step(call("known", signedBy("other")))), ``},
		"parallel calls":              {gemini(g3, hi+","+step(call("known", ""), call("b", ""))), gemini(g3, hi+","+step(call("known", signedBy("c2ln/+==")), call("b", "")))},
		"unknown":                     {gemini(g3, hi+","+step(call("a", ""), call("b", ""))), gemini(g3, hi+","+step(call("a", signedBy(bypass)), call("b", "")))},
		"unknown, of an older model":  {gemini(g2, hi+","+step(call("a", ""))), ``},
		"unknown, of another family":  {gemini("gemma-4-31b-it", hi+","+step(call("a", ""))), ``},
		"unknown, of an alias":        {gemini("gemini-flash-latest", hi+","+step(call("a", ""))), gemini("gemini-flash-latest", hi+","+step(call("a", signedBy(bypass))))},
		"unknown, in an earlier turn": {gemini(g3, hi+","+step(call("a", ""))+","+result+","+hi), ``},
		"every step":                  {gemini(g3, hi+","+step(call("a", ""))+","+result+","+step(call("b", ""))), gemini(g3, hi+","+step(call("a", signedBy(bypass)))+","+result+","+step(call("b", signedBy(bypass))))},
		"the model comes last":        {`{"messages":[` + step(call("a", "")) + `],"model":"gemini-3.1-pro"}`, `{"messages":[` + step(call("a", signedBy(bypass))) + `],"model":"gemini-3.1-pro"}`},
		"other content is kept":       {gemini(g3, step(call("known", `,"extra_content":{"x":1.0,"google":{"y":[]}}`))), gemini(g3, step(call("known", `,"extra_content":{"x":1.0,"google":{"y":[],"thought_signature":"c2ln/+=="}}`)))},
		"no google":                   {gemini(g3, step(call("known", `,"extra_content":{"x":1}`))), gemini(g3, step(call("known", `,"extra_content":{"x":1,"google":{"thought_signature":"c2ln/+=="}}`)))},
		"null":                        {gemini(g3, step(call("known", `,"extra_content":null`))), gemini(g3, step(call("known", signedBy("c2ln/+=="))))},
		"an empty one":                {gemini(g3, step(call("known", signedBy("")))), gemini(g3, step(call("known", signedBy("c2ln/+=="))))},
		"strange calls":               {gemini(g3, `{"role":"assistant","tool_calls":[7,{}]},{"role":"assistant","tool_calls":{}}`), ``},
		"an empty call":               {gemini(g3, step(`{ }`)), gemini(g3, step(`{ "extra_content":{"google":{"thought_signature":"`+bypass+`"}}}`))},
		"no JSON":                     {`{"model":"gemini-3","messages":[{"tool_calls":[{}`, ``},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := []byte(tc.in)
			out := s.Inject(in)
			if tc.out == "" {
				require.Same(t, &in[0], &out[0], "%s", out)
				return
			}
			require.Equal(t, tc.out, string(out))
			require.Equal(t, tc.out, string(s.Inject(out)))
		})
	}
}

// Gemini's recorded answers are learned, however they are cut.
func TestObserve(t *testing.T) {
	t.Parallel()
	stream, whole := fixtures.Get("gemini/stream-tools.sse").Body, fixtures.Get("gemini/chat-tools.json").Body
	for name, tc := range map[string]struct {
		body    []byte
		through func(io.Reader) io.Reader
	}{
		"at once":         {stream, func(r io.Reader) io.Reader { return r }},
		"byte by byte":    {stream, iotest.OneByteReader},
		"halves":          {stream, iotest.HalfReader},
		"with the error":  {stream, iotest.DataErrReader},
		"no end of line":  {stream[:strings.Index(string(stream), "\n")], iotest.HalfReader},
		"CRLF":            {[]byte(strings.ReplaceAll(string(stream), "\n", "\r\n")), iotest.HalfReader},
		"no space":        {[]byte(strings.ReplaceAll(string(stream), "data: ", "data:")), iotest.HalfReader},
		"comments before": {append([]byte(": ping {\n\n"), stream...), iotest.HalfReader},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := compat.NewSignatures()
			got := watched(t, s, "text/event-stream", tc.through(strings.NewReader(string(tc.body))))
			require.Contains(t, got, "function-call-1001")
			require.Equal(t, "U0lHLWZ4LTE=", s.Signature("function-call-1001"))
			require.Empty(t, s.Signature(""))
		})
	}
	s := compat.NewSignatures()
	require.Equal(t, string(whole), watched(t, s, "application/json", strings.NewReader(string(whole))))
	require.Equal(t, "U0lHLWZ4LTE=", s.Signature("function-call-1001"))
	for _, odd := range []string{``, `thought_signature`, `{"choices":{"thought_signature":1}}`, `{"choices":[{"delta":{"tool_calls":[{"id":"x","extra_content":{"google":{"thought_signature":7}}}]}}]}`} {
		watched(t, s, "application/json", strings.NewReader(odd))
	}
	require.Empty(t, s.Signature("x"))
}

// watched reads an answer that is observed.
func watched(t *testing.T, s *compat.Signatures, kind string, body io.Reader) string {
	t.Helper()
	resp := &dialect.Response{Response: &upstream.Response{Status: 200, Header: http.Header{"Content-Type": {kind}}, Body: body}}
	s.Watch(resp)
	text, err := answertest.Body(resp)
	require.NoError(t, err)
	return text
}

func TestSignaturesAreBoundedInAge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := compat.NewSignatures()
		s.Learn("a", "1")
		s.Learn("b", "1")
		time.Sleep(59 * time.Minute) //nolint:forbidigo // fake time
		require.Equal(t, "1", s.Signature("a"), "use keeps it")
		time.Sleep(59 * time.Minute) //nolint:forbidigo // fake time
		require.Empty(t, s.Signature("b"))
		require.Equal(t, "1", s.Signature("a"))
		s.Learn("a", "2")
		time.Sleep(59 * time.Minute) //nolint:forbidigo // fake time
		require.Equal(t, "2", s.Signature("a"))
		time.Sleep(time.Hour) //nolint:forbidigo // fake time
		s.Learn("c", "3")
		require.Equal(t, 1, s.Len(), "old ones are forgotten without being asked for")
	})
}

func TestSignaturesAreBoundedInNumber(t *testing.T) {
	t.Parallel()
	s := compat.NewSignatures()
	s.Learn("first", "x")
	for i := range 10_000 {
		if i == 5_000 {
			require.Equal(t, "x", s.Signature("first"))
		}
		s.Learn(strconv.Itoa(i), "y")
	}
	require.Equal(t, 10_000, s.Len())
	require.Equal(t, "x", s.Signature("first"), "the one that was used longest ago goes")
	require.Empty(t, s.Signature("0"))
	require.Equal(t, "y", s.Signature("1"))
}

func TestSignaturesAreBoundedInSize(t *testing.T) {
	t.Parallel()
	s := compat.NewSignatures()
	for i := range 200 {
		s.Learn(strconv.Itoa(i), strings.Repeat("a", 1<<20))
	}
	require.Less(t, s.Len(), 65)
	s.Learn("huge", strings.Repeat("a", 1<<20+1))
	s.Learn(strings.Repeat("a", 1000), "x")
	s.Learn("", "x")
	s.Learn("none", "")
	for _, id := range []string{"huge", strings.Repeat("a", 1000), "", "none"} {
		require.Empty(t, s.Signature(id))
	}
}

func TestSignaturesConcurrently(t *testing.T) {
	t.Parallel()
	s := compat.NewSignatures()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 500 {
				id := fmt.Sprint(g, i%50)
				s.Learn(id, "x")
				s.Signature(id)
				s.Inject([]byte(gemini("gemini-3", step(call(id, "")))))
			}
		})
	}
	wg.Wait()
}
