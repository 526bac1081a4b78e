package anthropic

import (
	"math"
	"strconv"
	"strings"
)

// traits are what a model takes, as far as its name tells.
type traits struct {
	budget   bool // thinking with a budget of tokens
	adaptive bool // thinking with an effort instead
	xhigh    bool // knows the effort between high and max
	sampling bool // takes temperature, top_p and top_k
	both     bool // takes temperature and top_p in one request
	schema   bool // answers in a JSON schema
	prefill  bool // goes on with an answer that the assistant has begun
}

// traitsOf goes by the version in the name. Other providers that speak the protocol have names of their own; they get what most of them
// take, the oldest form of everything.
func traitsOf(model string) traits {
	v := modelVersion(model)
	return traits{
		budget:   v == 0 || v >= 307 && v < 406,
		adaptive: v >= 406,
		xhigh:    v >= 407,
		sampling: v < 407,
		both:     v < 401,
		schema:   v == 0 || v >= 401,
		prefill:  v < 406,
	}
}

// modelVersion gives 305 for claude-3-5-sonnet-20241022, 407 for claude-opus-4-7, 500 for claude-sonnet-5; 0 for what is no Claude. A
// Claude without a number is taken for a new one.
func modelVersion(model string) int {
	_, name, found := strings.Cut(model, "claude-")
	if !found {
		return 0
	}
	major := -1
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return strings.ContainsRune("-.:@", r) }) {
		n, err := strconv.Atoi(word)
		number := err == nil && len(word) <= 2 // a longer one is a date
		switch {
		case number && major >= 0:
			return major*100 + n
		case number:
			major = n
		case major >= 0:
			return major * 100
		}
	}
	if major < 0 {
		return math.MaxInt
	}
	return major * 100
}
