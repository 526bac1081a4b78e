package passage

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"hydrallm/services/enricher/internal/page"
)

// question asks for something that stands at one place of a long page, in other words than the page's where people would use others.
type question struct{ ask, answer string }

// exam is pages that come together for a question, and the questions.
type exam struct {
	name      string
	docs      []page.Document
	questions []question
}

// entries makes a long page of sections that are told alike, one per name; write gets the number of the section.
func entries(intro string, names []string, write func(i int, name string) string) string {
	var b strings.Builder
	b.WriteString(intro)
	for i, name := range names {
		b.WriteString("\n\n" + write(i, name))
	}
	return b.String()
}

func list(text string) []string { return strings.Split(text, ",") }

func lighthouses() exam {
	names := list("Ardmore,Bexhill,Carrick,Dunmore,Eastpoint,Fairway,Gorran,Hartland,Inverness,Jura,Kinnaird,Lismore,Mumbles,Noss Head,Orfordness,Portland,Quiraing,Rattray,Skerryvore,Tarbat,Ushant,Valentia,Wicklow,Yarmouth")
	text := entries("Lighthouses have guided ships for more than two thousand years. This page lists those of the northern coast, with their history.", names, func(i int, n string) string {
		return fmt.Sprintf("## %s\n\nThe tower stands on a cliff above the bay and has been painted white since the war. Its lamp can be seen from far out at sea. "+
			"Visitors climb the stairs in summer, when the keeper's family sells tea and postcards in the former oil store.\n\nConstruction was completed in %d under the engineer %s Stevenson, "+
			"after two earlier beacons had been lost to storms. The structure rises %d metres above high water and its light reaches %d nautical miles.\n\nAutomation came in %d, when the last keeper left.",
			n, 1801+i*7, []string{"Alan", "David", "Robert", "Thomas"}[i%4], 20+i, 12+i%9, 1960+i)
	})
	return exam{"encyclopedia", []page.Document{{Title: "Lighthouses of the northern coast", Text: text}}, []question{
		{"When was the Skerryvore lighthouse built?", "completed in 1927"},
		{"how high is Tarbat lighthouse", "rises 39 metres"},
		{"In which year did Wicklow become automated?", "came in 1982"},
		{"Who was the engineer of Portland lighthouse?", "engineer Thomas Stevenson"},
		{"how far can the light of Valentia be seen, in nautical miles", "reaches 15 nautical miles"},
	}}
}

func settings() exam {
	names := list("retries,timeout,max_body,idle_conns,log_level,cache_size,cache_ttl,user_agent,proxy_url,tls_min_version,compression,rate_limit,burst,queue_depth,workers,grace_period,health_path,metrics_addr,trace_ratio,region,bucket,prefix,encryption,replicas,snapshot_interval,compaction,read_only,auth_mode,token_lifetime,audit_log")
	var table strings.Builder
	table.WriteString("| Setting | Default | Meaning |\n|---|---|---|\n")
	for i, n := range names {
		fmt.Fprintf(&table, "| `%s` | `%d` | Controls how the server treats %s; change it with care and restart afterwards |\n", n, 10+i*3, strings.ReplaceAll(n, "_", " "))
	}
	text := "This is the reference of all settings of the server. Every setting can be given in the file, in the environment or as a flag.\n\n" +
		entries("# Introduction", list("Files,Environment,Flags,Precedence,Validation,Reloading"), func(i int, n string) string {
			return fmt.Sprintf("## %s\n\n%s", n, strings.Repeat(fmt.Sprintf("The server reads its configuration in step %d and reports what it does not understand before it starts to listen. ", i+1), 18))
		}) + "\n\n# Reference\n\n" + table.String() + "\n\n# Troubleshooting\n\n" +
		"If the server exits with code 78, the file could not be parsed.\n\n```sh\n" + strings.Repeat("server check --file server.yaml --verbose\n", 25) + "server migrate --from v1 --to v2 --dry-run\n" +
		strings.Repeat("server run --file server.yaml\n", 25) + "```"
	return exam{"reference", []page.Document{{Title: "Configuration reference", Text: text}}, []question{
		{"default of snapshot_interval", "| `snapshot_interval` | `82` |"},
		{"what does the token lifetime setting default to?", "| `token_lifetime` | `94` |"},
		{"server exits with code 78", "could not be parsed"},
		{"how do I migrate from v1 to v2", "server migrate --from v1 --to v2"},
		{"what is the default value of trace_ratio", "| `trace_ratio` | `64` |"},
	}}
}

func forum() exam {
	users := list("anna,bert,carla,dmitri,elif,farid,greta,henrik,ines,jonas,kim,lena,mario,nadia,oscar,petra,quinn,rosa,sven,tara,uwe,vera,walt,xenia,yuri,zoe")
	text := entries("Thread: my bike lamp flickers after rain, what can I do?", users, func(i int, n string) string {
		post := "Same here. I have had this lamp for years, and it flickers whenever the road is wet and bumpy. I took it apart twice and saw nothing, so I hope somebody has a better idea than mine."
		switch n {
		case "rosa":
			post = "I measured it: the connector behind the dynamo corrodes. Clean the two pins with vinegar and put silicone grease on them. That cured mine for good."
		case "vera":
			post = "Warranty covers this. Write to support with the serial number, they replaced mine within nine days and asked no questions."
		case "yuri":
			post = "Do not buy the cheap bulb from the market. The original part is HL-4471, and it is 6 volts, 2.4 watts."
		}
		return fmt.Sprintf("**%s** wrote on day %d:\n\n%s\n\nRegards, and thanks to all who answered before me in this long thread. %s", n, i+1, post, strings.Repeat("My bike is a touring bike with many kilometres on it. ", 2))
	})
	return exam{"forum", []page.Document{{Title: "Bike lamp flickers", Text: text}}, []question{
		{"how to fix a bike lamp that flickers because of a corroded connector", "Clean the two pins with vinegar"},
		{"part number and voltage of the original bulb", "HL-4471"},
		{"does the warranty replace the lamp and how long does it take", "within nine days"},
		{"what grease goes on the dynamo connector", "silicone grease"},
	}}
}

// news is three results of a search of which one has the answer, deep within.
func news() exam {
	report := func(topic string, n int) string {
		return strings.Repeat(fmt.Sprintf("The council of the city discussed %s again on Monday, and members of all parties spoke for several hours about costs and delays. ", topic), n)
	}
	text := "# Council meets\n\n" + report("the tram extension", 14) + "\n\n" + report("the new library", 10) + "\n\nThe vote on the tram extension ended 31 to 24, with two abstentions. Work begins on 3 May and is to take 26 months.\n\n" +
		report("the swimming pool", 14) + "\n\nThe library will close on Sundays from October on, said the mayor, Ms Okafor.\n\n" + report("the budget", 20)
	other := func(topic string) string { return "# " + topic + "\n\n" + report(topic, 60) }
	return exam{"news", []page.Document{
		{Title: "Tram extension: the history", Text: other("the tram and its history")}, {Title: "Council meets", Text: text}, {Title: "Letters", Text: other("letters about the tram extension")},
	}, []question{
		{"result of the vote on the tram extension", "31 to 24"},
		{"when does work on the tram extension begin", "3 May"},
		{"on which day will the library be closed", "close on Sundays"},
		{"who is the mayor", "Ms Okafor"},
	}}
}

func ferries() exam {
	names := list("욕지도,연화도,매물도,비진도,한산도,사량도,거문도,백도,청산도,보길도,흑산도,홍도,가거도,조도,관매도,위도,선유도,어청도,외연도,덕적도,자월도,승봉도,대이작도,연평도,백령도,울릉도,독도,추자도,가파도,마라도")
	var table strings.Builder
	table.WriteString("| 섬 | 출발 | 요금 | 소요 시간 |\n|---|---|---|---|\n")
	for i, n := range names {
		fmt.Fprintf(&table, "| %s | %02d:%02d | %d,%d00원 | %d분 |\n", n, 6+i%11, i%6*10, 9+i, i%10, 40+i*5)
	}
	text := "연안 여객선의 운항 시간과 요금을 모은 안내입니다. 배는 날씨에 따라 늦어지거나 뜨지 않을 수 있습니다.\n\n" +
		entries("# 이용 안내", list("예매,환불,승선,수하물,차량,반려동물,할인"), func(_ int, n string) string {
			extra := map[string]string{
				"환불":   "출발 한 시간 전까지 취소하면 요금의 90%를 돌려받습니다. ",
				"반려동물": "반려동물은 이동장에 넣어야 하고 무게는 10kg을 넘을 수 없습니다. ", "할인": "섬 주민은 운임의 절반만 냅니다. 65세 이상은 20% 할인을 받습니다. ",
			}[n]
			return fmt.Sprintf("## %s\n\n%s%s%s", n, strings.Repeat("여객선 터미널에서는 직원의 안내에 따라 주시고 신분증을 꼭 챙겨 주시기 바랍니다. ", 18), extra, strings.Repeat("자세한 사항은 터미널에 있는 안내판을 참고해 주시기 바랍니다. ", 14))
		}) + "\n\n# 시간표\n\n" + table.String()
	return exam{"시간표", []page.Document{{Title: "연안 여객선 안내", Text: text}}, []question{
		{"백령도 가는 배는 몇 시에 출발해?", "| 백령도 | 08:00 |"},
		{"울릉도 여객선 요금이 얼마야", "34,500원"},
		{"여객선 표를 취소하면 환불을 얼마나 받나요", "요금의 90%"},
		{"강아지를 데리고 배에 탈 때 반려동물 무게 제한", "10kg을 넘을 수"},
		{"섬 주민 할인은 얼마나 되나", "운임의 절반"},
		{"마라도까지 걸리는 시간", "| 185분 |"},
	}}
}

func grants() exam {
	names := list("한빛,늘푸른,새싹,두루,다솜,가온,누리,미르,보람,솔빛,아라,은하,초롱,큰별,푸름,하늘,해오름,도담,마루,바른,사랑,온누리,참빛,한울,예그리나,나래,단비,라온,윤슬,시나브로")
	text := entries("재단별 장학금을 모았습니다. 신청 전에 반드시 공고문을 확인하시기 바랍니다.", names, func(i int, n string) string {
		return fmt.Sprintf("### %s장학재단\n\n이 재단은 성적이 우수하고 형편이 어려운 학생을 돕기 위해 세워졌습니다. 해마다 많은 학생이 지원하며 서류와 면접을 거쳐 뽑습니다. 뽑힌 학생은 봄과 가을에 열리는 모임에서 선배들을 만나고, 방학에는 이웃을 돕는 일에 함께합니다.\n\n"+
			"접수는 %d월 %d일까지이며, 선발된 학생에게는 학기마다 %d만원이 지급됩니다. 평점은 %d.%d 이상이어야 합니다.\n\n문의는 재단 사무국으로 하시고, 결과는 누리집에 올립니다.", n, 1+i%12, 1+i%28, 100+i*10, 2+i%2, i%10)
	})
	return exam{"장학금", []page.Document{{Title: "장학금 모음", Text: text}}, []question{
		{"윤슬장학재단 신청 마감일이 언제야?", "5월 1일까지"},
		{"예그리나 장학재단은 학기당 얼마를 주나요", "340만원"},
		{"시나브로장학재단의 평점 기준 알려줘", "평점은 3.9 이상"},
		{"단비 장학금 접수 기간", "3월 27일까지"},
		{"라온장학재단 장학금 액수", "370만원"},
	}}
}

func articles() exam {
	line := func(topic string, n int) string {
		return strings.Repeat(topic+"에 대한 논의가 이어지고 있으며 관계 부처는 여러 의견을 듣고 있다고 밝혔다. ", n)
	}
	main := line("철도 개통", 20) + "\n\n" + line("역세권 개발", 20) + "\n\n새 노선의 운행 간격은 출퇴근 시간에 6분이고, 첫차는 오전 5시 40분에 떠난다.\n\n" + line("환승 체계", 25) +
		"\n\n김서연 사업단장은 총사업비가 2조 3천억 원으로 늘었다고 설명했다.\n\n" + line("안전 점검", 30)
	return exam{"기사", []page.Document{
		{Title: "철도 이야기", Text: line("옛 철도", 120)}, {Title: "새 노선 개통", Text: main}, {Title: "독자 의견", Text: line("독자들이 보낸 철도 의견", 100)},
	}, []question{
		{"새 노선 첫차 시간", "오전 5시 40분"},
		{"출퇴근 시간 운행 간격이 어떻게 돼?", "6분"},
		{"철도 사업비가 총 얼마로 늘었나", "2조 3천억"},
		{"사업단장 이름", "김서연"},
	}}
}

// measure gives how many questions there are, of how many the answer is in what Pick keeps, and in the first lines of the pages.
func measure(s exam, budget int) (n, picked, first int, missed []string) {
	sizes := make([]int, len(s.docs))
	for i, d := range s.docs {
		sizes[i] = utf8.RuneCountInString(d.Text)
	}
	var head strings.Builder
	for i, b := range share(sizes, budget) {
		head.WriteString(cut(s.docs[i].Text, b))
	}
	for _, q := range s.questions {
		n++
		if strings.Contains(head.String(), q.answer) {
			first++
		}
		if strings.Contains(strings.Join(Pick(s.docs, q.ask, budget), "\n"), q.answer) {
			picked++
		} else {
			missed = append(missed, q.ask)
		}
	}
	return n, picked, first, missed
}

func exams() []exam {
	return []exam{lighthouses(), settings(), forum(), news(), ferries(), grants(), articles()}
}

// what answers a question is kept, wherever it stands.
func TestAnswersAreKept(t *testing.T) {
	t.Parallel()
	for _, s := range exams() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, q := range s.questions {
				require.Contains(t, s.docs[min(1, len(s.docs)-1)].Text, q.answer)
			}
			for _, budget := range []int{6000, 1200} { // of one question, and the share of one page of five
				n, picked, first, missed := measure(s, budget)
				t.Logf("%d questions, %d characters: %d answers kept, %d in the first lines", n, budget, picked, first)
				require.Empty(t, missed)
			}
		})
	}
}

// BenchmarkPick shows the time for one question, and the share of answers that is kept in 6000 characters.
func BenchmarkPick(b *testing.B) {
	for _, s := range exams() {
		b.Run(s.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Pick(s.docs, s.questions[0].ask, 6000)
			}
			n, picked, first, _ := measure(s, 6000)
			b.ReportMetric(float64(picked)/float64(n), "answers/question")
			b.ReportMetric(float64(first)/float64(n), "answers-in-first-lines/question")
		})
	}
}
