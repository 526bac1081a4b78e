package answer_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/shared/openai"
)

func reader(text string) *openai.Reader { return openai.NewReader(strings.NewReader(text), 0) }

// SSE-04, SSE-10, FO-10, R-122: what an event of a chat stream is, and whether a client may get it as it came.
func TestReader(t *testing.T) {
	t.Parallel()
	const chunk = `{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`
	for name, tc := range map[string]struct {
		event string
		kind  answer.Kind
		data  string
		same  bool
	}{
		"chunk":               {"data: " + chunk + "\n\n", answer.Piece, chunk, true},
		"chunk, CRLF":         {"data:" + chunk + "\r\n\r\n", answer.Piece, chunk, true},
		"chunk with a name":   {"event: message\ndata: " + chunk + "\n\n", answer.Piece, chunk, true},
		"chunk in two lines":  {"data: {\"choices\":[],\ndata: \"x\":1}\n\n", answer.Piece, "{\"choices\":[],\n\"x\":1}", false},
		"chunk without field": {chunk + "\n\n", answer.Piece, chunk, false},
		"chunk at the end":    {"data: " + chunk, answer.Piece, chunk, false},
		"not UTF-8":           {"data: {\"choices\":[],\"x\":\"\xff\"}\n\n", answer.Piece, `{"choices":[],"x":"` + "\ufffd" + `"}`, false},
		"comment":             {": wait\n\n", answer.Comment, "", true},
		"comment as data":     {"data: : wait\n\n", answer.Nothing, "", false},
		"lone name":           {"event: ping\n\n", answer.Nothing, "", false},
		"no data":             {"data:\n\n", answer.Nothing, "", false},
		"text":                {"upstream request timeout\n\n", answer.Nothing, "", false},
		"a page":              {"<html>\n<body>Bad gateway</body>\n</html>\n\n", answer.Nothing, "", false},
		"a page at the end":   {"<html><body>Bad gateway</body></html>", answer.Nothing, "", false},
		"text before a chunk": {"WARN slow\ndata: " + chunk + "\n\n", answer.Piece, chunk, false},
		"half a value":        {`data: {"choices":[`, answer.Nothing, `{"choices":[`, false},
		"done":                {"data: [DONE]\n\n", answer.Done, "", true},
		"done, with spaces":   {"data:  [DONE] \n\n", answer.Done, "", false},
		"error":               {"data: {\"error\":\"x\"}\n\n", answer.Problem, `{"error":"x"}`, false},
		"named error":         {"event: error\ndata: {\"x\":1}\n\n", answer.Problem, `{"error":{"x":1}}`, false},
		"named, in words":     {"event: error\ndata: boom\n\n", answer.Problem, `{"error":"boom"}`, false},
		"not JSON":            {"data: boom\n\n", answer.Problem, "boom", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := answer.NewReader(reader(tc.event)).Next()
			require.NoError(t, err)
			require.Equal(t, tc.kind, c.Kind)
			require.Equal(t, tc.data, string(c.Data))
			if c.Kind != answer.Problem {
				require.Equal(t, tc.same, c.Raw != nil)
			}
			if tc.same {
				require.Equal(t, tc.event, string(c.Raw))
			}
		})
	}
}

// TOOL-01, TOOL-04, TOOL-07: calls as they come.
func TestCalls(t *testing.T) {
	t.Parallel()
	var c answer.Chunk
	c.Parse([]byte(`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{","x":1},"y":2},` +
		`{"index":"1","id":"","function":{"arguments":{"b":1}}},7,{"id":null,"type":"custom","custom":{"name":"sh","input":"ls","z":3}}]}},` +
		`{"index":1,"delta":{"tool_calls":[{"index":99999}]}}]}`))
	require.True(t, c.Valid)
	calls := c.Choices[0].Calls
	require.Len(t, calls, 4)
	first := calls[0]
	require.Equal(t, `"a" "function" "f" "{"`, strings.Join([]string{string(first.ID), string(first.Type), string(first.Name), string(first.Args)}, " "))
	require.True(t, first.PlainIndex && first.Repeats && first.Extra && !first.Custom)
	others, tool := first.More()
	require.Equal(t, `,"y":2,"x":1`, string(others)+string(tool))
	require.Equal(t, 1, calls[1].Index)
	require.False(t, calls[1].PlainIndex)
	require.Equal(t, `{\"b\":1}`, string(calls[1].ArgText()))
	require.Equal(t, `7`, string(calls[2].Raw))
	require.True(t, calls[3].Custom)
	require.Equal(t, `"sh""ls"`, string(calls[3].Name)+string(calls[3].Args))
	others, tool = calls[3].More()
	require.Equal(t, `,"z":3`, string(others)+string(tool))
	require.Equal(t, -1, c.Choices[1].Calls[0].Index)
	require.Len(t, c.Data, c.Size())
}

// letters gives a chunk for each letter of an event that is no dash, and takes a dot for the end.
type letters struct{ ended bool }

func (l *letters) Event(out *answer.Queue, e *openai.Event) bool {
	for _, letter := range string(e.Data) {
		switch letter {
		case '-':
		case '.':
			return false
		default:
			out.Add(answer.Piece).Choose(0).Content = []byte(string(letter))
		}
	}
	return true
}

func (l *letters) End(out *answer.Queue) {
	l.ended = true
	out.Add(answer.Done)
}

// Buffered promises a chunk, not only an event that may come to nothing: who waits for one in vain would hold back what it has.
func TestTranslate(t *testing.T) {
	t.Parallel()
	var l letters
	src := answer.Translate(reader("data: ab\n\ndata: -\n\ndata: c\n\ndata: -\n\n"), &l)
	require.False(t, src.Buffered(), "nothing was read yet")
	for _, want := range []struct {
		letter string
		more   bool
	}{{"a", true}, {"b", true}, {"c", false}} {
		c, err := src.Next()
		require.NoError(t, err)
		require.Equal(t, want.letter, string(c.Choices[0].Content))
		require.Equal(t, want.more, src.Buffered())
	}
	c, err := src.Next()
	require.NoError(t, err)
	require.Equal(t, answer.Done, c.Kind)
	for range 2 {
		_, err = src.Next()
		require.ErrorIs(t, err, io.EOF)
		require.False(t, src.Buffered())
	}

	l = letters{}
	src = answer.Translate(reader("data: a.\n\ndata: b\n\n"), &l)
	_, err = src.Next()
	require.NoError(t, err)
	_, err = src.Next()
	require.ErrorIs(t, err, io.EOF)
	require.False(t, l.ended, "it saw the end itself")

	broken := errors.New("broken")
	src = answer.Translate(openai.NewReader(io.MultiReader(strings.NewReader("data: a\n\n"), iotest.ErrReader(broken)), 0), &l)
	_, err = src.Next()
	require.NoError(t, err)
	_, err = src.Next()
	require.ErrorIs(t, err, broken)
	require.False(t, l.ended)
}

func TestQueue(t *testing.T) {
	t.Parallel()
	var q answer.Queue
	_, err := q.Next()
	require.ErrorIs(t, err, io.EOF)
	q.Ping()
	q.Problem([]byte("x"))
	require.Equal(t, 2, q.Len())
	c, err := q.Next()
	require.NoError(t, err)
	require.Equal(t, ": ping\n\n", string(c.Raw))
	q.Clear()
	require.False(t, q.Buffered())
	c = q.Add(answer.Piece)
	require.Nil(t, c.Raw, "room is used again, contents are not")
	require.True(t, q.Buffered())
}
