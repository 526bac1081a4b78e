package passage

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/page"
	"hydrallm/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func doc(text string) page.Document { return page.Document{URL: "https://a.example", Text: text} }

// filler is n sentences that answer nothing.
func filler(n int) string {
	return strings.Repeat("The harbour is quiet in the evening and the boats lie still beside the old wall of stone. ", n)
}

// what fits is kept as it is.
func TestWhatFitsIsKept(t *testing.T) {
	t.Parallel()
	text := "# A\n\none\n\n* x\n*  y\n\n```\ncode  \n\n\nmore\n```\n"
	require.Equal(t, []string{strings.TrimSpace(text), "", "b"}, Pick([]page.Document{doc(text), doc(" \n"), doc("b")}, "lamp", 6000))
	require.Empty(t, Pick(nil, "lamp", 6000))
	require.Equal(t, []string{"", ""}, Pick([]page.Document{doc("abc"), doc("d")}, "lamp", 0))
	require.Equal(t, []string{"…"}, Pick([]page.Document{doc("abc")}, "lamp", 1))
}

// what answers is kept, in the order of the page, and what is missing is marked.
func TestWhatAnswersIsKept(t *testing.T) {
	t.Parallel()
	text := "# Guide\n\n" + filler(30) + "\n\n## Opening\n\nThe museum opens at nine.\n\n" + filler(30) + "\n\n## Tickets\n\nA ticket costs 12 euros.\n\n" + filler(30)
	got := Pick([]page.Document{doc(text)}, "How much does a ticket of the museum cost?", 120)
	require.Equal(t, []string{"# Guide\n…\n## Opening\n\nThe museum opens at nine.\n…\n## Tickets\n\nA ticket costs 12 euros.\n…"}, got)
}

// Rows of a table are not understood without its head, code not without its fences.
func TestTablesAndCodeStayWhole(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	table.WriteString("| Route | Price |\n|---|---|\n")
	for name := range strings.FieldsSeq(strings.Repeat("Busan Mokpo Yeosu Incheon ", 30) + "Ulleung " + strings.Repeat("Tongyeong Pohang ", 30)) {
		table.WriteString("| " + name + " | 10 |\n")
	}
	got := Pick([]page.Document{doc("Prices.\n\n" + table.String())}, "ferry price to Ulleung", 100)[0]
	require.Contains(t, got, "| Route | Price |\n|---|---|\n…\n")
	require.Contains(t, got, "\n| Ulleung | 10 |\n")

	code := "Use it.\n\n```sh\n" + strings.Repeat("run --other value\n", 40) + "run --timeout 30\n" + strings.Repeat("run --last value\n", 40) + "```\n\nEnd."
	got = Pick([]page.Document{doc(code)}, "timeout option", 60)[0]
	require.Contains(t, got, "```sh\n")
	require.Contains(t, got, "run --timeout 30\n")
	require.Contains(t, got, "\n```")
}

// each source has a share, and what one does not need is for the others.
func TestShares(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		needs  []int
		budget int
		want   []int
	}{
		{[]int{100, 100, 100}, 90, []int{30, 30, 30}},
		{[]int{10, 100, 100}, 90, []int{10, 40, 40}},
		{[]int{100, 0, 20}, 90, []int{70, 0, 20}},
		{[]int{10, 20}, 90, []int{10, 20}},
		{[]int{50, 50}, 0, []int{0, 0}},
		{nil, 10, []int{}},
	} {
		require.Equal(t, tt.want, share(tt.needs, tt.budget))
	}
	docs := []page.Document{doc("lamp one. " + filler(100)), doc("nothing of it. " + filler(100)), doc("short")}
	got := Pick(docs, "lamp", 3000)
	require.Contains(t, got[0], "lamp one")
	require.Contains(t, got[1], "nothing of it", "a page without any word of the query begins with its begin")
	require.Equal(t, "short", got[2])
	for _, text := range got[:2] {
		require.Greater(t, utf8.RuneCountInString(text), 1200)
	}
}

// Without a question the beginning counts, and how each section begins.
func TestWithoutAQuestion(t *testing.T) {
	t.Parallel()
	text := "# Report\n\nThis is the lead.\n\n" + filler(20) + "\n\n## First\n\nBegin of one.\n\n" + filler(20) + "\n\n## Second\n\nBegin of two.\n\n" + filler(20)
	for _, query := range []string{"", "summarise this page: https://a.example/x", "https://a.example/lamp 이 기사 요약해줘", "Can you explain what it says?", "이 링크 내용 정리해줘", "!!!"} {
		got := Pick([]page.Document{doc(text)}, query, 1000)[0]
		require.True(t, strings.HasPrefix(got, "# Report\n\nThis is the lead.\n\nThe harbour"), query)
		for _, want := range []string{"## First\n\nBegin of one.", "## Second\n\nBegin of two."} {
			require.Contains(t, got, want, query)
		}
	}
}

// Words of the title count for the whole document, those of headings for what is below them.
func TestTitleAndHeadingsCount(t *testing.T) {
	t.Parallel()
	var sections strings.Builder
	sections.WriteString("Intro.\n\n")
	for _, name := range []string{"Alpha", "Beta", "Gamma", "Delta"} {
		sections.WriteString("## " + name + "\n\nIt costs " + name[:1] + "1 euros.\n\n" + filler(10) + "\n\n")
	}
	require.Contains(t, Pick([]page.Document{doc(sections.String())}, "what does gamma cost", 120)[0], "## Gamma\n\nIt costs G1 euros.")
}

func TestSplit(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("Words of a sentence that goes on. ", 20)
	tests := map[string]struct {
		text string
		want []string
	}{
		"nothing":      {" \n\n", nil},
		"paragraphs":   {"a\nb\n\nc", []string{"a\nb", "c"}},
		"headings":     {"# A\ntext\n## B", []string{"# A", "text", "## B"}},
		"no heading":   {"#tag\n#", []string{"#tag\n#"}},
		"list":         {"intro:\n- a\n  more\n- b\n1. c\n2) d", []string{"intro:", "- a\n  more", "- b", "1. c", "2) d"}},
		"table":        {"| a | b |\n| --- | :-: |\n| 1 | 2 |\n| 3 | 4 |", []string{"| a | b |\n| --- | :-: |", "| 1 | 2 |", "| 3 | 4 |"}},
		"rows alone":   {"| 1 | 2 |\n| 3 | 4 |", []string{"| 1 | 2 |", "| 3 | 4 |"}},
		"code":         {"```go\nx := 1\n\n# no heading\n```\nend", []string{"```go", "x := 1", "# no heading", "```", "end"}},
		"code no end":  {"~~~\nx", []string{"~~~", "x", "~~~"}},
		"no sentences": {strings.Repeat("가", 1000), []string{strings.Repeat("가", 480), strings.Repeat("가", 480), strings.Repeat("가", 40)}},
		"no spaces":    {strings.Repeat("書", 200) + "。" + strings.Repeat("書", 200), []string{strings.Repeat("書", 200) + "。", strings.Repeat("書", 200)}},
		"sentences": {long, []string{
			strings.TrimSpace(long[:34*5]), strings.TrimSpace(long[:34*5]), strings.TrimSpace(long[:34*5]), strings.TrimSpace(long[:34*5]),
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range split(tt.text) {
				got = append(got, p.text)
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"The Cities' lamps, glass; status!": {"the", "city", "lamp", "glass", "status"},
		"12,000 won, 3.14. v1.8":            {"12000", "won", "3.14", "v1.8"},
		"DDR5는 40만원":                        {"ddr5", "는", "40", "만원", "만원"},
		"국가장학금":                             {"국가장학금", "국가", "가장", "장학", "학금"},
		"東京タワー x":                           {"東京", "京タ", "タワ", "ワー", "x"},
		"Größe été":                         {"größe", "été"},
	} {
		var got []string
		words(text, func(w string, _ float64) { got = append(got, w) })
		require.Equal(t, want, got, text)
	}
}

// A page of nothing but marks takes no more than its share of the time.
func TestManySmallParts(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"a\n\n", "- a\n", "|a|\n", "# a\n", "```\n", "가\n\n"} {
		docs := []page.Document{doc(strings.Repeat(line, page.MaxRunes/len([]rune(line))))}
		got := Pick(docs, "a 가", 6000)[0]
		require.NotEmpty(t, got)
		require.LessOrEqual(t, utf8.RuneCountInString(got), 6000)
	}
}

// Whatever the pages are, the limit holds.
func FuzzPick(f *testing.F) {
	f.Add("# A\n\n"+filler(20)+"\n\n| a |\n|--|\n| b |\n\n```\nc\n```", "harbour wall", 200)
	f.Add("국가장학금 신청 기간은 3월까지입니다. "+filler(3), "장학금 기간", 40)
	f.Add("```\n```\n- \n|\n|-|", "?", 3)
	f.Add("\xff\xfe|\n#\u2028 a", "\xff", 1)
	f.Fuzz(func(t *testing.T, text, query string, budget int) {
		docs := []page.Document{doc(text), doc("A lamp. " + text), doc("")}
		total := 0
		for i, got := range Pick(docs, query, budget) {
			total += utf8.RuneCountInString(got)
			if strings.TrimSpace(docs[i].Text) == "" {
				require.Empty(t, got)
			} else if budget >= 10 {
				require.NotEmpty(t, got)
			}
		}
		require.LessOrEqual(t, total, max(budget, 0))
	})
}
