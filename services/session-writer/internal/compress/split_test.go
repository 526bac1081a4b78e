package compress

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// sentences of English and Korean end where people see their end.
func TestSentences(t *testing.T) {
	t.Parallel()
	tests := map[string][]string{
		"One. Two! Three? Four":                    {"One.", "Two!", "Three?", "Four"},
		"Dr. Kim met Mr. J. Park. They agreed.":    {"Dr. Kim met Mr. J. Park.", "They agreed."},
		"Use e.g. a map. It costs 3.50 or v1.2.3.": {"Use e.g. a map.", "It costs 3.50 or v1.2.3."},
		"1. First step. 2. Second step.":           {"1. First step.", "2. Second step."},
		"Run `go. Test it` now. Then stop.":        {"Run `go. Test it` now.", "Then stop."},
		"See https://a.example/x.Y?q=1. Next.":     {"See https://a.example/x.Y?q=1.", "Next."},
		"https://한글.한국/문서.목록 참고":                   {"https://한글.한국/문서.목록 참고"},
		"회의는 끝났습니다. 내일 만나요. 알겠죠?":                  {"회의는 끝났습니다.", "내일 만나요.", "알겠죠?"},
		"배포했다.그리고 확인했다.":                           {"배포했다.", "그리고 확인했다."},
		"오늘은 회의가 있습니다 내일은 쉬어요 그럼 이만":               {"오늘은 회의가 있습니다", "내일은 쉬어요", "그럼 이만"},
		"그는 간다고 합니다 라고 말했다.":                       {"그는 간다고 합니다 라고 말했다."},
		"출시일은 2024. 3. 15. 금요일입니다. 확인해 주세요.":       {"출시일은 2024. 3. 15. 금요일입니다.", "확인해 주세요."},
		"설정은 server.timeout과 서버.설정 파일에 있다. 끝.":     {"설정은 server.timeout과 서버.설정 파일에 있다.", "끝."},
		"これは文です。次の文です。":                            {"これは文です。", "次の文です。"},
		"":     nil,
		" \t ": nil,
		"...":  {"..."},
		"메일은 kim@a.example.한국으로 보내요. 네.":                {"메일은 kim@a.example.한국으로 보내요.", "네."},
		"He said \"Stop.\" Then he left. (Really.) Yes": {"He said \"Stop.\"", "Then he left.", "(Really.)", "Yes"},
	}
	for text, want := range tests {
		var got []string
		for s := range sentences(text) {
			got = append(got, s)
		}
		require.Equal(t, want, got, text)
	}
}

// a block of code is one unit, also one that is never closed; who speaks is known; what is too long is divided between words.
func TestUnits(t *testing.T) {
	t.Parallel()
	text := "User: Look. It fails:\n```go\nif a. B {\n\n}\n```\nWhy?\n\nAssistant: ```\nopen. Code\n\nUser: - one\n- two. Three"
	var got []string
	for _, u := range split(text) {
		kind := "text"
		if u.code {
			kind = "code"
		}
		got = append(got, u.speaker+"|"+kind+"|"+u.text)
	}
	require.Equal(t, []string{
		"User|text|Look.", "User|text|It fails:", "User|code|```go\nif a. B {\n\n}\n```", "User|text|Why?",
		"Assistant|code|```\nopen. Code", "User|text|- one", "User|text|- two.", "User|text|Three",
	}, got)
	for _, u := range split(strings.Repeat("word ", 1000) + strings.Repeat("한", 1000)) {
		require.LessOrEqual(t, utf8.RuneCountInString(u.text), maxSentence)
		require.False(t, strings.HasPrefix(u.text, "ord"))
	}
}

func FuzzSplit(f *testing.F) {
	for _, seed := range []string{
		"User: a. B\n\nAssistant: ```\nx\n```\n", "```", "~~~\nUser: x\n\nUser: y", "1. 2. 3.", "다.요.\xff\xfe", "Dr. `a. b` 2024. 3. 15.", "습니다 습니다 라고", "\r\n\u2028\u0085x",
		"User: User: x", "a\n\nSystem: ", "Tool: \n```", "User: :",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rest := text
		for _, u := range split(text) { // each is a piece of the text, in order, with nothing lost between them
			require.NotEmpty(t, u.text)
			var found bool
			rest, found = behind(rest, u.text)
			require.True(t, found, "%q, or something before it, is lost", u.text)
		}
		short, err := Extractive{}.Compress(t.Context(), strings.Repeat(text, 1+2000/(len(text)+1)), 200)
		require.NoError(t, err)
		if utf8.ValidString(text) {
			require.True(t, utf8.ValidString(short))
		}
	})
}

// behind gives what follows a piece before which is nothing but white space and names of speakers. A name may hold what the piece is, such as a colon.
func behind(text, piece string) (rest string, found bool) {
	for at := 0; at <= len(text)-len(piece); at++ {
		if strings.HasPrefix(text[at:], piece) && isGap(text[:at]) {
			return text[at+len(piece):], true
		}
	}
	return "", false
}

func isGap(text string) bool {
	text = strings.TrimSpace(text)
	for _, s := range speakers {
		text = strings.TrimSpace(strings.ReplaceAll(text+" ", s+": ", ""))
	}
	return text == ""
}
