package compact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/services/session-writer/internal/compact"
)

// talk is a long conversation with facts among words that say little.
func talk(facts []string, idle []string, turns int) string {
	var lines []string
	fact := 0
	for i := range turns {
		said := []string{idle[i%len(idle)], idle[(i*7+3)%len(idle)]}
		if i%(turns/len(facts)) == 0 && fact < len(facts) {
			said = append(said, facts[fact])
			fact++
		}
		lines = append(lines, "User: "+strings.Join(said, " "), fmt.Sprintf("Assistant: %s %s", idle[(i*5+1)%len(idle)], idle[(i*3+2)%len(idle)]))
	}
	return strings.Join(lines, "\n")
}

var (
	english = []string{
		"The access code of gate 7 is KX-4711.", "Dr. Orlova signs the contract on May 12.", "We decided to use PostgreSQL 16 instead of MySQL.",
		"The function parse_header() in net/http.go panics on empty input.", "My name is Ada Lindqvist and I live in Tromsø.",
		"The budget must never be above 48,500 euros.", "The bug is tracked as ISSUE-2931.", "Please remember that Tomas is allergic to peanuts.",
	}
	korean = []string{
		"7번 게이트의 출입 코드는 KX-4711입니다.", "오를로바 박사가 5월 12일에 계약서에 서명합니다.", "MySQL 대신 PostgreSQL 16을 쓰기로 결정했습니다.",
		"parse_header() 함수가 빈 입력에서 멈춥니다.", "제 이름은 김하늘이고 부산에 삽니다.", "예산은 절대 4,850만 원을 넘으면 안 됩니다.", "반드시 기억해 주세요, 토마스는 땅콩 알레르기가 있습니다.",
	}
	idleEnglish = []string{
		"That sounds fine to me and i think we can go on like this.", "Well, there is a lot to say about all of that.", "It is nice weather and the birds are singing outside.",
		"Could you tell me a bit more about how this works in general?", "Sure, happy to help with whatever comes up next.", "As a rule it depends on many different things.",
		"Let me think about it for a moment before we go on.", "Thanks, that was helpful and quite clear.", "There are several ways to look at this kind of thing.",
	}
	idleKorean = []string{
		"네, 그렇게 계속 진행하면 될 것 같습니다.", "그 부분에 대해서는 이야기할 것이 많습니다.", "오늘은 날씨가 참 좋고 새들이 노래합니다.", "일반적으로 어떻게 동작하는지 조금 더 알려 주실 수 있나요?",
		"물론입니다, 무엇이든 도와드리겠습니다.", "그것은 여러 가지 상황에 따라 다릅니다.", "잠시 생각해 보고 이어서 말씀드리겠습니다.", "감사합니다, 아주 잘 이해했습니다.",
	}
)

// of a long conversation in English or Korean, names, numbers, decisions and identifiers are kept.
func TestExtractKeepsFacts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ facts, idle []string }{"english": {english, idleEnglish}, "korean": {korean, idleKorean}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := talk(tt.facts, tt.idle, 160)
			const tokens = 150
			require.Greater(t, utf8.RuneCountInString(text), 5*4*tokens)
			summary, err := compact.Extract{}.Compress(t.Context(), text, tokens)
			require.NoError(t, err)
			require.LessOrEqual(t, utf8.RuneCountInString(summary), 4*tokens+20*len(strings.Split(summary, "\n")))
			at := -1
			for _, fact := range tt.facts {
				i := strings.Index(summary, fact)
				require.Greater(t, i, at, "%q, in its order, in\n%s", fact, summary)
				at = i
			}

			// what was kept once stays when more comes.
			again := summary + "\n" + talk([]string{"The new port is 8443."}, tt.idle, 80)
			second, err := compact.Extract{}.Compress(t.Context(), again, tokens)
			require.NoError(t, err)
			for _, fact := range append([]string{"The new port is 8443."}, tt.facts...) {
				require.Contains(t, second, fact)
			}
		})
	}
}

// short texts and those that fit pass.
func TestExtractLeavesShortTextsAlone(t *testing.T) {
	t.Parallel()
	for text, tokens := range map[string]int{"": 1, strings.Repeat("a b. ", 99): 1, strings.Repeat("a b. ", 400): 500} {
		got, err := compact.Extract{}.Compress(t.Context(), text, tokens)
		require.NoError(t, err)
		require.Equal(t, text, got)
	}
	long := strings.Repeat("한", 5000)
	got, err := compact.Extract{}.Compress(t.Context(), long, 100)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("한", 400), got, "without a sentence that fits, the beginning")
}

func TestTranscript(t *testing.T) {
	t.Parallel()
	got := compact.Transcript([]string{
		compact.Message("User: before"), `{"role":"user","content":"hi"}`, `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"hi"}`,
		`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":1}"}}]}`, `{"role":"tool","content":"` + strings.Repeat("x", 5000) + `"}`,
		`{"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:secret"}}]}`, `{"role":"assistant","content":""}`,
	})
	require.Equal(t, "User: before\nUser: hi\nAssistant: hi\nAssistant: called f {\"a\":1}\nTool: "+strings.Repeat("x", 600)+"\nUser: see", got)
}

func FuzzExtract(f *testing.F) {
	f.Add(talk(english[:2], idleEnglish, 6), 50)
	f.Add(talk(korean[:2], idleKorean, 6), 50)
	f.Add(strings.Repeat("\xff. A. ", 300), 9)
	f.Fuzz(func(t *testing.T, text string, tokens int) {
		tokens = min(max(tokens, 1), 1000)
		text = strings.ToValidUTF8(text, "?")
		got, err := compact.Extract{}.Compress(t.Context(), text, tokens)
		if err != nil || !utf8.ValidString(got) {
			t.Fatal(err, got)
		}
		if n := utf8.RuneCountInString(got); n > utf8.RuneCountInString(text)+len("Assistant: ")*(strings.Count(text, "\n")+1) {
			t.Fatalf("%d characters of %d", n, utf8.RuneCountInString(text))
		}
	})
}

func BenchmarkExtract(b *testing.B) {
	text := talk(english, idleEnglish, 400)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := (compact.Extract{}).Compress(b.Context(), text, compact.Tokens); err != nil {
			b.Fatal(err)
		}
	}
}
