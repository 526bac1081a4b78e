package openai

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// pieces is a source that gives one piece per read and, if it has one, an error with the last piece or after it.
type pieces struct {
	list [][]byte
	err  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.list) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		return 0, io.EOF
	}
	n := copy(b, p.list[0])
	if p.list[0] = p.list[0][n:]; len(p.list[0]) == 0 {
		p.list = p.list[1:]
	}
	return n, nil
}

func cut(text string, at ...int) *pieces {
	p := &pieces{}
	from := 0
	for _, i := range append(at, len(text)) {
		if i > from && i <= len(text) {
			p.list = append(p.list, []byte(text[from:i]))
			from = i
		}
	}
	return p
}

// seen is a copy of an event.
type seen struct {
	data, name, id, retry string
	hasData, cut, odd     bool
}

func readAll(tb testing.TB, src io.Reader) (events []seen, raw string, err error) {
	tb.Helper()
	r := NewReader(src, 0)
	for {
		buffered := r.Buffered()
		e, err := r.Next()
		if err != nil {
			require.False(tb, buffered)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return events, raw, err
		}
		r.Buffered() // must not disturb e
		raw += string(e.Raw)
		if e.Data != nil || e.Name != nil || e.ID != nil || e.Retry != nil {
			events = append(events, seen{string(e.Data), string(e.Name), string(e.ID), string(e.Retry), e.Data != nil, e.Cut, e.Noncanonical})
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	d := func(data string) seen { return seen{data: data, hasData: true} }
	own := func(data string) seen { return seen{data: data, hasData: true, odd: true} } // is no event of the standard
	cases := []struct {
		name, in string
		want     []seen
	}{
		{"plain", "data: {}\n\ndata: [DONE]\n\n", []seen{d("{}"), d("[DONE]")}},
		{"no space", "data:{}\n\n", []seen{d("{}")}}, // SSE-01
		{"two spaces", "data:  {}\n\n", []seen{d(" {}")}},
		{"fields", "event:x\nid: 1\nretry: 10\ndata: a\n\n", []seen{{"a", "x", "1", "10", true, false, false}}},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []seen{d("a"), d("b")}}, // SSE-02
		{"cr", "data: a\r\rdata: b\r\r", []seen{d("a"), d("b")}},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", []seen{d("a"), d("b"), d("c")}},
		{"comments", ": hello\n\n:\n\n: x\ndata: a\n: y\n\n", []seen{d("a")}}, // SSE-04
		{"blank lines", "\n\n\ndata: a\n\n\n\n", []seen{d("a")}},
		{"several lines", "data: {\"a\":\ndata: 1\ndata:}\n\n", []seen{d("{\"a\":\n1\n}")}},                                                  // SSE-08
		{"values on lines", "data: {\"a\":1}\ndata: {\"b\":\"}\"}\ndata: [DONE]\n\n", []seen{own(`{"a":1}`), own(`{"b":"}"}`), d("[DONE]")}},
		{"no blank lines", "data: {}\ndata: {}\r\ndata: {}\r: x\ndata: [DONE]\ndata: 1", []seen{own("{}"), own("{}"), own("{}"), own("[DONE]"), {data: "1", hasData: true, cut: true}}},
		{"a value on a line and one on several", "data: {\"a\":1} \ndata: {\"b\":\ndata: [2]\ndata: }\ndata: 3\n\n", []seen{own("{\"a\":1} "), own("{\"b\":\n[2]\n}"), d("3")}},
		{"values with names", "event: a\ndata: {}\nevent: b\nid: 1\ndata: {}\n\n", []seen{{data: "{}", name: "a", hasData: true, odd: true}, {"{}", "b", "1", "", true, false, false}}},
		{"a name between values", "data: {}\nevent: error\ndata: {}\n\n", []seen{own("{}"), {data: "{}", name: "error", hasData: true}}},
		{"one name for both values", "event: a\ndata: {}\ndata: {}\n\n", []seen{{data: "{}", name: "a", hasData: true, odd: true}, d("{}")}},
		{"a name behind the value", "data: {}\nevent: a\n\n", []seen{{data: "{}", name: "a", hasData: true}}},
		{"an error behind a value", "data: {}\nerror: {}\n\n", []seen{own("{}"), {data: "{}", name: "error", hasData: true, odd: true}}},
		{"bare values", "{\"a\":\n1}\n{}\n[1]\n\n", []seen{own("{\"a\":\n1}"), own("{}"), own("[1]")}},
		{"bare, then data", "{}\ndata: {}\n\n", []seen{own("{}"), d("{}")}},
		{"brackets that hold no JSON", "data: {x}\ndata: {}\n\n", []seen{d("{x}\n{}")}},
		{"values that are no objects", "data: 1\ndata: \"a\"\n\n", []seen{d("1\n\"a\"")}},
		{"more on the line of a value", "data: {} {}\ndata: {}\n\n", []seen{d("{} {}\n{}")}},
		{"half a value at the end", "data: {}\ndata: {\"a", []seen{own("{}"), {data: `{"a`, hasData: true, cut: true}}},
		{"empty data", "data\n\ndata:\n\n", []seen{d(""), d("")}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\ndata: b\n\n", []seen{{data: "a", hasData: true, odd: true}, d("b")}},
		{"one line feed at the end", "data: a\n\ndata: b\n", []seen{d("a"), {data: "b", hasData: true, cut: true}}}, // SSE-10
		{"no line end at the end", "data: a\n\ndata: b", []seen{d("a"), {data: "b", hasData: true, cut: true}}},
		{"event without data", "event: ping\n\n", []seen{{name: "ping"}}},
		{"unknown field", "foo: bar\ndata: a\n\n", []seen{own("a")}},
		{"field error", "error: {\"code\":500}\n\n", []seen{{data: `{"code":500}`, name: "error", hasData: true, odd: true}}},
		{"bare object", "{\"error\":\n {\"a\": 1}}\n\ndata: a\n\n", []seen{{data: "{\"error\":\n {\"a\": 1}}", hasData: true, odd: true}, d("a")}},
		{"bare done", "[DONE]\n\n", []seen{{data: "[DONE]", hasData: true, odd: true}}},
		{"utf-8", "data: 안녕 🌍\n\n", []seen{d("안녕 🌍")}}, // SSE-06
		{"empty", "", nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for i := range len(c.in) + 1 { // every single cut, and every pair
				for j := i; j <= len(c.in); j++ {
					got, raw, err := readAll(t, cut(c.in, i, j))
					require.NoError(t, err)
					require.Equal(t, c.in, raw)
					require.Equal(t, c.want, got, "cut at %d and %d", i, j)
				}
			}
			got, raw, err := readAll(t, iotest.OneByteReader(strings.NewReader(c.in)))
			require.NoError(t, err)
			require.Equal(t, c.in, raw)
			require.Equal(t, c.want, got)
		})
	}
}

// TestReaderDoesNotWait checks that an event comes as soon as its last byte is there, even if that byte may be half of a CRLF.
func TestReaderDoesNotWait(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"data: a\n\n": "a", "data: a\r\n\r": "a", "data: a\r\r": "a", "data: a\r\n\r\n": "a",
		"data: {}\ndata: [1]\n": "{}", "event: a\ndata: {}\nevent: b\n": "{}",
	} {
		r := NewReader(io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("read too far"))), 0)
		e, err := r.Next()
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, string(e.Data))
	}
}

func TestReaderBuffered(t *testing.T) {
	t.Parallel()
	r := NewReader(&pieces{list: [][]byte{[]byte("data: a\n\ndata: b\ndata: b\n\ndata: c"), []byte("\n\n")}}, 0)
	require.False(t, r.Buffered())
	a, err := r.Next()
	require.NoError(t, err)
	require.True(t, r.Buffered())
	require.Equal(t, "a", string(a.Data))
	b, err := r.Next()
	require.NoError(t, err)
	require.False(t, r.Buffered())
	require.Equal(t, "b\nb", string(b.Data))
	c, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, "c", string(c.Data))
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
	_, err = r.Next()
	require.Equal(t, io.EOF, err)
}

func TestReaderErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("reset")
	r := NewReader(&pieces{list: [][]byte{[]byte("data: a\n\ndata: b")}, err: broken}, 0)
	_, err := r.Next()
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, broken)

	r = NewReader(&pieces{list: [][]byte{{}, {}}}, 0)
	r.src = readerFunc(func([]byte) (int, error) { return 0, nil })
	_, err = r.Next()
	require.ErrorIs(t, err, io.ErrNoProgress)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

func TestReaderLimit(t *testing.T) { // SSE-07
	t.Parallel()
	for _, n := range []int{70_000, 1_100_000, 4_200_000} {
		want := strings.Repeat("x", n)
		got, _, err := readAll(t, strings.NewReader("data: "+want+"\n\ndata: b\n\n"))
		require.NoError(t, err)
		require.Len(t, got, 2)
		require.Equal(t, want, got[0].data)
	}
	for _, text := range []string{"data: a\n\n" + "data: " + strings.Repeat("x", 100_000) + "\n\n", "data: a\n\n" + strings.Repeat("data: x\n", 100_000)} {
		r := NewReader(strings.NewReader(text), 50_000)
		e, err := r.Next()
		require.NoError(t, err)
		require.Equal(t, "a", string(e.Data))
		_, err = r.Next()
		require.ErrorIs(t, err, ErrEventTooLarge)
		require.LessOrEqual(t, cap(r.buf), 2*50_000)
	}
	endless := readerFunc(func(b []byte) (int, error) { return len(b), nil })
	r := NewReader(endless, 1<<20)
	_, err := r.Next()
	require.ErrorIs(t, err, ErrEventTooLarge)
	require.LessOrEqual(t, cap(r.buf), 2<<20)
	r.Reset(strings.NewReader("data: a\n\n"), 0)
	require.Zero(t, cap(r.buf))
	_, err = r.Next()
	require.NoError(t, err)
}

func TestAppendData(t *testing.T) { // SSE-08
	t.Parallel()
	require.Equal(t, "data: {\"a\":  1}\n\n", string(AppendData(nil, []byte("{\"a\":\r\n1}"))))
	require.True(t, IsDone([]byte(" [DONE] ")))
	require.False(t, IsDone([]byte(`{"a":"[DONE]"}`)))
	got, _, err := readAll(t, strings.NewReader(Done))
	require.NoError(t, err)
	require.True(t, IsDone([]byte(got[0].data)))
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("data: a\r\n\r\n: c\n\nevent: x\ndata: b\ndata: c\r\r\xef\xbb\xbfdata"), uint16(3), uint16(9))
	f.Add([]byte("\xef\xbb\xbferror: {}\n\n{\"a\":1}\n"), uint16(1), uint16(2))
	f.Add([]byte("event: a\r\ndata: {\"b\":\r\ndata: [1]}\r\ndata: {}\rid: 1\rdata: [DONE]\n{}\n{}"), uint16(20), uint16(31))
	f.Fuzz(func(t *testing.T, text []byte, i, j uint16) {
		whole, raw, err := readAll(t, bytes.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, string(text), raw)
		for _, src := range []io.Reader{cut(string(text), int(i), int(j)), iotest.OneByteReader(bytes.NewReader(text))} {
			got, raw, err := readAll(t, src)
			require.NoError(t, err)
			require.Equal(t, string(text), raw)
			require.Equal(t, whole, got)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	chunk := "data: " + string(contentChunk) + "\n\n"
	text := strings.Repeat(chunk, 50)
	src := strings.NewReader(text)
	r := NewReader(src, 0)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(text)
		r.Reset(src, 0)
		for {
			if _, err := r.Next(); err != nil {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/50, "ns/event")
}

var contentChunk = []byte(`{"id":"chatcmpl-01","object":"chat.completion.chunk","created":1790000000,"model":"alpha-1","service_tier":"default","system_fingerprint":"fp_x","choices":[{"index":0,"delta":{"content":" green"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ3kPq"}`)
