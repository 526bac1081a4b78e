package compress

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// texts under 500 characters pass, and so do those that are short enough; others fit into the target.
func TestLengths(t *testing.T) {
	t.Parallel()
	long := talks(t, "en", 2)[0].text
	blob := strings.Repeat("x", 9000)
	code := "Look:\n```go\n" + strings.Repeat("x := 1\n", 900) + "```\nThat is it."
	for name, c := range map[string]interface {
		Compress(ctx context.Context, text string, target int) (string, error)
	}{"extractive": Extractive{}, "head and tail": HeadTail{}} {
		for _, text := range []string{"", "short. Text", strings.Repeat("가", passLength-1)} {
			same, err := c.Compress(t.Context(), text, 1)
			require.NoError(t, err)
			require.Equal(t, text, same, name)
		}
		same, err := c.Compress(t.Context(), long, Tokens(long)+1)
		require.NoError(t, err)
		require.Equal(t, long, same, name)
		for _, text := range []string{long, talks(t, "ko", 2)[0].text, blob, code, strings.Repeat("다.", 3000), strings.Repeat("\n\n", 3000) + blob} {
			for _, target := range []int{125, 800} {
				short, err := c.Compress(t.Context(), text, target)
				require.NoError(t, err)
				require.NotEmpty(t, short)
				require.LessOrEqual(t, utf8.RuneCountInString(short), max(target*charactersPerToken, passLength), "%s %d", name, target)
			}
		}
	}
}

// what is kept stands as it was said, in its order, by whom it was said; what is said twice is kept once.
func TestExtractiveKeepsOrderAndWords(t *testing.T) {
	t.Parallel()
	text := talks(t, "en", 2)[1].text
	short, err := Extractive{}.Compress(t.Context(), text, 300)
	require.NoError(t, err)
	again, err := Extractive{}.Compress(t.Context(), text, 300)
	require.NoError(t, err)
	require.Equal(t, short, again)
	from, seen := 0, map[string]bool{}
	all := split(text)
	for _, u := range split(short) {
		require.False(t, seen[u.text], u.text)
		seen[u.text] = true
		for from < len(all) && all[from].text != u.text {
			from++
		}
		require.Less(t, from, len(all), "%q is not said behind what is kept before it", u.text)
		require.Equal(t, all[from].speaker, u.speaker)
	}
}

// names, numbers, decisions, addresses and code are what stays, in both languages; greetings and questions go first.
func TestExtractiveKeepsFacts(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	keep := []string{
		"The deadline is May 12.", "They said that Orlova signs the contract.", "We decided to use gRPC.", "Set `max_conns` to 40.", "See https://a.example/run.",
		"담당자는 김하늘 팀장입니다.", "예산은 300만 원으로 확정했습니다.", "\n```go\nfunc Fence() int { return 7 }\n```",
	}
	for i, fact := range keep {
		Say(&b, User, "Hello there, how are you today? Could you tell me more about that? "+fact)
		Say(&b, Assistant, fmt.Sprintf("Sure! Great question. Rivers run down to the sea, slowly and quietly, as they did since the world began, %s. Let me know if you need anything else! 도움이 필요하시면 언제든지 말씀해 주세요.",
			strings.Repeat("and the hills look on ", i+1)))
	}
	short, err := Extractive{}.Compress(t.Context(), b.String(), 220)
	require.NoError(t, err)
	for _, fact := range keep {
		require.Contains(t, short, strings.TrimSpace(fact))
	}
	for _, gone := range []string{"how are you", "Great question", "언제든지"} {
		require.NotContains(t, short, gone)
	}
}

// without a compressor head and tail stay, with a mark between them.
func TestHeadTail(t *testing.T) {
	t.Parallel()
	short, err := HeadTail{}.Compress(t.Context(), "begin "+strings.Repeat("가나다 ", 500)+"end", 130)
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(short, "begin ") && strings.HasSuffix(short, " end") && strings.Contains(short, "[...]"))
}

func sidecar(t *testing.T, handler http.HandlerFunc) *Sidecar {
	t.Helper()
	server := httptest.NewServer(handler)
	s := NewSidecar(server.URL + "/compress")
	t.Cleanup(func() {
		s.Close()
		server.Close()
	})
	return s
}

// the contract of the side-car.
func TestSidecar(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("한 문장. ", 200)
	s := sidecar(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got map[string]any
		if err = errors.Join(err, json.Unmarshal(body, &got)); err != nil || r.Method != http.MethodPost || r.URL.Path != "/compress" || got["text"] != text {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintf(w, `{"text": " short %v ", "tokens": 5}`, got["target_tokens"])
	})
	short, err := s.Compress(t.Context(), text, 99)
	require.NoError(t, err)
	require.Equal(t, "short 99", short)
	short, err = s.Compress(t.Context(), "too short to ask", 1)
	require.NoError(t, err)
	require.Equal(t, "too short to ask", short)
}

// whatever the side-car does wrong, the text is compressed, and somebody is told.
func TestSidecarFails(t *testing.T) {
	t.Parallel()
	text := Prefix(talks(t, "ko", 2)[0].text, 2000)
	want, err := Extractive{}.Compress(t.Context(), text, 200)
	require.NoError(t, err)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, test := range map[string]struct {
		ctx    context.Context //nolint:containedctx // the table's
		answer http.HandlerFunc
	}{
		"status":   {t.Context(), func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }},
		"redirect": {t.Context(), func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }},
		"no JSON":  {t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }},
		"no text":  {t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"text":" "}`) }},
		"longer": {t.Context(), func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]string{"text": text + "!"})
		}},
		"cut off":    {t.Context(), func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		"no time":    {ended, func(http.ResponseWriter, *http.Request) {}},
		"not a text": {t.Context(), func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"text":{}}`) }},
	} {
		var told error
		f := NewFallback(sidecar(t, test.answer), func(_ context.Context, err error) { told = errors.Join(told, err) })
		short, err := f.Compress(test.ctx, text, 200)
		require.NoError(t, err, name)
		require.Equal(t, want, short, name)
		require.Equal(t, test.ctx == ended, told == nil, name)
		short, err = f.Compress(test.ctx, text, 200)
		require.NoError(t, err, name)
		require.Equal(t, want, short, name)
		if told != nil {
			require.NotContains(t, told.Error(), "\n", "it is not asked again at once")
			require.NotContains(t, told.Error(), "User", "no text of a conversation is in an error")
		}
	}
}
