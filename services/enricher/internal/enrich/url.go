package enrich

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxURL is how long an address may be, in bytes; that of web_fetch is as long at most.
const maxURL = 4096

// maxURLs is how many pages are read for one request.
const maxURLs = 5

// address is an address in a text. It ends at white space, parentheses, angle brackets, and at quotation marks that no address holds.
var address = regexp.MustCompile("(?i)https?://[^\\s()<>\"`\u00a0\u3000“”‘’「」『』《》〈〉【】（）。，、…]+")

// urls gives the addresses to fetch: those that the text names, and the one that the client wants fetched, each once.
func urls(text, fetch string, auto bool) []string {
	var list, seen []string
	add := func(u string) {
		if key := sameAs(u); !slices.Contains(seen, key) {
			list, seen = append(list, u), append(seen, key)
		}
	}
	if auto {
		for _, match := range address.FindAllString(text, -1) {
			if u := trimmed(match); u != "" && len(u) <= maxURL {
				add(u)
			}
		}
	}
	if fetch = strings.TrimSpace(fetch); fetch != "" {
		if len(list) >= maxURLs && !slices.Contains(seen, sameAs(fetch)) {
			list, seen = list[:maxURLs-1], seen[:maxURLs-1]
		}
		add(fetch)
		if i := slices.Index(seen, sameAs(fetch)); i >= maxURLs {
			list[maxURLs-1] = list[i]
		}
	}
	return list[:min(len(list), maxURLs)]
}

// sameAs is the same for two spellings of one address: without the fragment, and with the host in lower case.
func sameAs(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	u.Scheme, u.Host, u.Fragment, u.RawFragment = strings.ToLower(u.Scheme), strings.ToLower(u.Host), "", ""
	if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// trimmed takes off what stands behind an address in a sentence: punctuation and Korean particles. It is "" when nothing remains.
func trimmed(u string) string {
	for {
		short := strings.TrimRightFunc(u, func(r rune) bool {
			return strings.ContainsRune(`.,;:!?'"]}[{*|\^~`, r) || r > unicode.MaxASCII && unicode.IsPunct(r)
		})
		short = withoutParticle(short)
		if short == u {
			break
		}
		u = short
	}
	if rest := u[strings.Index(u, "://")+3:]; rest == "" || strings.HasPrefix(rest, "/") {
		return ""
	}
	return u
}

// particles are Korean endings that follow a noun without a space.
var particles = []string{
	"을", "를", "이", "가", "은", "는", "의", "에", "에서", "에서는", "에서의", "에는", "에도", "에게", "로", "으로", "로는", "으로는", "로부터", "와", "과", "랑", "이랑", "하고",
	"도", "만", "까지", "부터", "보다", "처럼", "같은", "라는", "이라는", "라고", "이라고", "이나", "나", "이란", "란", "이야", "야", "입니다", "이다", "인데", "인가", "이고", "좀", "께",
	"에서도", "으로도", "로도", "만을", "까지의", "에서만", "에만", "요", "이요", "이에요", "예요", "에요", "한테", "대로", "마다", "조차", "밖에", "뿐",
}

// withoutParticle takes a particle off that is glued to an ASCII address. An address in Hangul may end in any syllable.
func withoutParticle(u string) string {
	cut := strings.LastIndexFunc(u, func(r rune) bool { return !unicode.Is(unicode.Hangul, r) })
	if cut < 0 {
		return u
	}
	_, size := utf8.DecodeRuneInString(u[cut:])
	head, tail := u[:cut+size], u[cut+size:]
	if tail == "" || strings.ContainsFunc(head, func(r rune) bool { return r > unicode.MaxASCII }) || !slices.Contains(particles, tail) {
		return u
	}
	if last := head[len(head)-1]; last == '=' || last == '%' {
		return u
	}
	return head
}
