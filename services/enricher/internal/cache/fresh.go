package cache

import (
	"regexp"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// timeBoundAge is how old what answers a question about the present may be.
const timeBoundAge = 15 * time.Minute

// present finds words that ask for the present. It decides only how long something is kept: a word too many costs a fetch.
var present = regexp.MustCompile(`(?i)\b(?:now|today|tonight|tomorrow|yesterday|current(?:ly)?|latest|newest|recent(?:ly)?|breaking|live|this\s+(?:morning|evening|week|month|year)|` +
	`so far)\b|지금|오늘|현재|방금|실시간|최신|최근|요즘|내일|어제|이번\s*(?:주|달|년|해)|올해|속보`)

// MaxAge is how old what is kept may be to answer a query.
func MaxAge(query string, ttl time.Duration) time.Duration {
	if present.MatchString(query) {
		return min(ttl, timeBoundAge)
	}
	return ttl
}

// QueryKey is the name under which the results of a query are kept: how it is written makes no difference.
func QueryKey(query string) string {
	return strings.ToLower(strings.Join(strings.Fields(norm.NFKC.String(query)), " "))
}
