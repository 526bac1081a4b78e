package passage

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
)

// Parameters of BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009). Parts are of a size, so that
// their length counts for less than it does for pages.
const (
	saturation   = 1.2
	lengthWeight = 0.4

	contextWeight  = 0.5 // of a word in headings, the title or the head of the table, beside one in the text
	neighbourShare = 0.3 // of the score of the better neighbour: an answer often stands beside the words of the question
	leadShare      = 0.6 // of the budget for the beginning when nothing is asked
)

var urlPattern = regexp.MustCompile(`https?://\S+`)

// idle are words that say what to do or build the sentence, and nothing of what is looked for.
var idle = set(`a an and are as at be been but by can could did do does for from had has have how i if in into is it its me my of on or our please
	should so tell than that the their them then there these they this those to us was we were what when where which who whom whose why will with would you your
	summarise summarize summary tldr explain describe read show give say about page article link website site url content text document
	요약 요약해 요약해줘 요약해주세요 요약해봐 정리 정리해 정리해줘 정리해주세요 설명 설명해 설명해줘 설명해주세요 알려 알려줘 알려주세요 말해줘 읽어줘 읽고 보여줘 해 해줘 해주세요 좀
	이 그 저 이거 이것 그것 이걸 이글 글 글을 페이지 페이지를 링크 링크를 기사 기사를 사이트 내용 내용을 내용은 문서 문서를 뭐 뭐야 뭐라고 무엇 무엇인가요 무엇이야 뭔가요
	어떤 어떻게 어디 어디야 어디인가요 언제 언제야 언제인가요 누구 누구야 누가 왜 얼마 얼마야 얼마인가요 몇 은 는 을 를 에 의 와 과 도 있어 있나요 인가요 대해 대한 대해서 관해 찾아줘 검색해줘 주세요 줘`)

func set(words string) map[string]bool {
	m := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		m[w] = true
	}
	return m
}

// query is the words that are looked for.
type query struct {
	terms   map[string]int // to the place in weights
	weights []float64
}

// readQuery takes the words from a text; there are none if it says nothing but what to do.
func readQuery(text string) query {
	q := query{terms: map[string]int{}}
	for field := range strings.FieldsSeq(urlPattern.ReplaceAllString(text, " ")) {
		if idle[strings.ToLower(strings.Trim(field, ".,;:!?\"'()[]~…。！？"))] {
			continue
		}
		words(field, func(w string, weight float64) {
			if idle[w] {
				return
			}
			i, known := q.terms[w]
			if !known {
				i = len(q.weights)
				q.terms[w], q.weights = i, append(q.weights, 0)
			}
			q.weights[i] = max(q.weights[i], weight)
		})
	}
	return q
}

// count gives how often each word of the query is in a text, and how many words the text has.
func (q query) count(text string) (found []float64, n float64) {
	found = make([]float64, len(q.weights))
	words(text, func(w string, weight float64) {
		n += weight
		if i, ok := q.terms[w]; ok {
			found[i]++
		}
	})
	return found, n
}

// weigh gives each part of the sources its score.
func (q query) weigh(sources []*source) {
	if len(q.weights) == 0 {
		return
	}
	type counted struct {
		found []float64
		n     float64
	}
	var (
		all   = make([][]counted, len(sources))
		in    = make([]float64, len(q.weights)) // parts that have the word
		parts float64
		total float64
	)
	for i, s := range sources {
		all[i] = make([]counted, len(s.parts))
		for j := range s.parts {
			c := &all[i][j]
			c.found, c.n = q.count(s.parts[j].text)
			for k, f := range c.found {
				in[k] += min(f, 1)
			}
			parts++
			total += c.n
		}
	}
	mean := max(total/parts, 1)
	rare := make([]float64, len(q.weights))
	for k, n := range in {
		rare[k] = q.weights[k] * math.Log(1+(parts-n+0.5)/(n+0.5))
	}
	for i, s := range sources {
		own := make([]float64, len(s.parts))
		title, _ := q.count(s.title)
		for j, p := range s.parts {
			c := all[i][j]
			for k, f := range c.found {
				around := min(title[k], 1)
				for _, a := range p.about {
					around = max(around, min(all[i][a].found[k], 1))
				}
				own[j] += rare[k] * (contextWeight*around + f*(saturation+1)/(f+saturation*(1-lengthWeight+lengthWeight*c.n/mean)))
			}
		}
		s.scores = spread(own)
		for j, p := range s.parts {
			if p.head { // it comes with what is below it
				s.scores[j] = 0
			}
		}
	}
}

// spread gives each part some of the score of its better neighbour.
func spread(own []float64) []float64 {
	out := slices.Clone(own)
	for i := range own {
		best := 0.0
		if i > 0 {
			best = own[i-1]
		}
		if i+1 < len(own) {
			best = max(best, own[i+1])
		}
		out[i] += neighbourShare * best
	}
	return out
}

// order gives the parts, the best first: by score, or, if nothing is asked or found, as they tell what the page is about.
func (s *source) order(budget int) []int {
	order := make([]int, len(s.parts))
	for i := range order {
		order[i] = i
	}
	rank := make([]float64, len(s.parts))
	if len(s.scores) > 0 && slices.Max(s.scores) > 0 {
		copy(rank, s.scores)
	} else {
		s.lead(rank, int(leadShare*float64(budget)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[b], rank[a]) })
	return order
}

// lead ranks the beginning first, then headings and what stands first below them, then the rest.
func (s *source) lead(rank []float64, beginning int) {
	for i, p := range s.parts {
		switch below := i > 0 && s.parts[i-1].head; {
		case beginning > 0:
			rank[i] = 2
		case p.head, below:
			rank[i] = 1
		}
		beginning -= p.runes
	}
}
