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

// address is an address in a text. It ends at white space, parentheses, angle brackets, and at what no address holds as it is: quotation marks, arrows,
// emoji, characters that show nothing. Letters and digits of all scripts may be in one.
var address = regexp.MustCompile(`(?i)https?://(?:[!#-'*-;=?-_a-z{-~]|[^\x00-\x7f\PL]|[^\x00-\x7f\PM]|[^\x00-\x7f\PN]|[\p{Pd}·・])+`)

// another is where the next of several addresses begins that are written without a space between them.
var another = regexp.MustCompile(`(?i)[,;|]https?://`)

// addresses gives what may be addresses in a text, with what stands behind them in a sentence.
func addresses(text string) (list []string) {
	for _, match := range address.FindAllString(text, -1) {
		for {
			at := another.FindStringIndex(match)
			if at == nil {
				break
			}
			list, match = append(list, match[:at[0]]), match[at[0]+1:]
		}
		list = append(list, match)
	}
	return list
}

// urls gives the addresses to fetch: those that the text names, and the one that the client wants fetched, each once.
func urls(text, fetch string, auto bool) []string {
	var list, seen []string
	add := func(u string) {
		if key := sameAs(u); len(list) < maxURLs && !slices.Contains(seen, key) {
			list, seen = append(list, u), append(seen, key)
		}
	}
	if auto {
		for _, match := range addresses(text) {
			if u := trimmed(match); u != "" && len(u) <= maxURL {
				add(u)
			}
		}
	}
	if fetch = strings.TrimSpace(fetch); fetch != "" {
		if len(list) == maxURLs && !slices.Contains(seen, sameAs(fetch)) {
			list = list[:maxURLs-1]
		}
		add(fetch)
	}
	return list
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
			return strings.ContainsRune(`.,;:!?'"]}[{*|\^~&`, r) || r > unicode.MaxASCII && unicode.IsPunct(r)
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

// particles are what follows a noun in Korean without a space: particles, those that may follow these, and forms of "to be" and "to be called".
var particles = regexp.MustCompile(`^(?:` +
	`[을를이가은는의]|(?:에|에서|에게|께|한테|에다|으?로|으?로부터|으?로써|으?로서|[와과]|이?랑|하고|까지|부터|에서부터|보다|처럼|같은|같이|대로|만|만큼|마다|조차|마저|밖에|뿐|[도나]|이나|이?라도)` +
	`(?:서|다가)?(?:[은는의도만을를이가]|부터|까지|라도|밖에|[이]?나)?(?:요)?|[은는]요|좀|요|` +
	`이?(?:라는|라고|란|라서|라면|라던데|라며|라는데|야|요|에요|예요|어요|죠|지|지만|고|니|니까|면|며|거든|던데|네|네요|든지)|예요|에요|인|인데|인데요|인지|인가|인가요|이다|입니다|입니다만|입니까|` +
	`이?었?였?는데)$`)

// withoutParticle takes a particle off that is glued to an ASCII address. An address in Hangul may end in any syllable.
func withoutParticle(u string) string {
	cut := strings.LastIndexFunc(u, func(r rune) bool { return !unicode.Is(unicode.Hangul, r) })
	if cut < 0 {
		return u
	}
	_, size := utf8.DecodeRuneInString(u[cut:])
	head, tail := u[:cut+size], u[cut+size:]
	if tail == "" || strings.ContainsFunc(head, func(r rune) bool { return r > unicode.MaxASCII }) || !particles.MatchString(tail) {
		return u
	}
	if last := head[len(head)-1]; last == '=' || last == '%' {
		return u
	}
	return head
}
