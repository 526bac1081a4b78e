package movein

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"hydrallm/shared/config"
)

// shape is what a value of the source is.
type shape int

const (
	text shape = iota
	number
	boolean
	nothing
	mapping
	list
)

// value is a value of the source. The methods that read one mark it as taken; a value that is not there is nil, and gives what an empty one does.
type value struct {
	shape  shape
	scalar string // as it is written, without quotes
	path   string
	file   string
	line   int

	keys   []string // of a mapping, in the order of the source
	fields map[string]*value
	items  []*value
	copies []*value // what stands in the places of aliases for this one

	taken bool
	why   string // why this, and what is below it, is not taken, whatever was asked for
	hint  string // the same, for what nobody asks for
	notes []string
}

// get gives the value that keys lead to, or nil. It takes nothing.
func (v *value) get(keys ...string) *value {
	for _, k := range keys {
		if v == nil {
			return nil
		}
		v = v.fields[k]
	}
	return v
}

// refuse says why this value, and all that is below it, is not taken, whatever was taken of it before.
func (v *value) refuse(why string, args ...any) {
	if v != nil {
		v.release()
		v.why = fmt.Sprintf(why, args...)
	}
}

// release takes the marks off the value and all below it.
func (v *value) release() {
	v.taken, v.why, v.notes = false, "", nil
	for _, k := range v.keys {
		v.fields[k].release()
	}
	for _, item := range v.items {
		item.release()
	}
}

// explain gives hints to members of a mapping, by key.
func (v *value) explain(hints map[string]string) {
	if v == nil {
		return
	}
	for _, k := range v.keys {
		if hint := hints[k]; hint != "" {
			v.fields[k].hint = hint
		}
	}
}

// note says how a value that is taken means something else here.
func (v *value) note(format string, args ...any) {
	if v != nil {
		v.notes = append(v.notes, fmt.Sprintf(format, args...))
	}
}

// take marks the value and all below it.
func (v *value) take() {
	if v == nil {
		return
	}
	v.taken = true
	for _, k := range v.keys {
		v.fields[k].take()
	}
	for _, item := range v.items {
		item.take()
	}
}

// is says whether a value is there and not null.
func (v *value) is() bool { return v != nil && v.shape != nothing }

// plain says whether it is a single value that is not null.
func (v *value) plain() bool { return v.is() && v.shape != mapping && v.shape != list }

// peek gives a single value as text, and takes nothing.
func (v *value) peek() string {
	if !v.plain() {
		return ""
	}
	return strings.TrimSpace(v.scalar)
}

// members gives the items of a list, and takes nothing.
func (v *value) members() []*value {
	if v == nil {
		return nil
	}
	return v.items
}

// str gives a single value as text, without space around it.
func (v *value) str() string {
	switch {
	case v == nil:
	case v.plain():
		v.taken = true
		return strings.TrimSpace(v.scalar)
	case v.shape == nothing:
		v.taken = true
	default:
		v.refuse("text is expected here")
	}
	return ""
}

// name gives text that the gateway takes for a name: of a model, a provider. It refuses what is none and gives "".
func (v *value) name() string {
	s := v.str()
	if why := badName(s); why != "" && v.is() {
		v.refuse("%s", why)
		return ""
	}
	return s
}

// badName says why a text can be no name, or "".
func badName(s string) string {
	switch {
	case s == "" || strings.TrimSpace(s) != s:
		return "can be no name here: it is empty, or begins or ends with space"
	case len(s) > maxName:
		return fmt.Sprintf("is a name of more than %d bytes", maxName)
	case strings.ContainsFunc(s, func(c rune) bool { return unicode.IsControl(c) || unicode.Is(unicode.Cf, c) }):
		return "is a name with a character that can't be seen"
	case strings.Contains(s, "${"):
		return "is a name with a variable, which is not replaced there"
	case config.LikeCredential(s):
		return "looks like a secret, and not like a name"
	}
	return ""
}

// maxName is the longest name of a model or provider, in bytes.
const maxName = 200

// num gives a finite number from 0 on. It refuses what is none.
func (v *value) num() (float64, bool) {
	if v == nil || v.shape == nothing {
		v.take()
		return 0, false
	}
	f, err := strconv.ParseFloat(strings.ReplaceAll(v.scalar, "_", ""), 64)
	if !v.plain() || err != nil || math.IsNaN(f) || math.IsInf(f, 0) || f < 0 {
		v.refuse("a number from 0 on is expected here")
		return 0, false
	}
	v.taken = true
	return f, true
}

// whole gives a whole number from 0 on, up to 2147483647.
func (v *value) whole() (int, bool) {
	f, ok := v.num()
	if ok && (f != math.Trunc(f) || f > math.MaxInt32) {
		v.refuse("a whole number is expected here")
		return 0, false
	}
	return int(f), ok
}

// longest is the longest time that is taken over.
const longest = 7 * 24 * time.Hour

// seconds gives a time above 0, of which the number is in seconds.
func (v *value) seconds() (time.Duration, bool) {
	f, ok := v.num()
	if ok && (f*float64(time.Second) > float64(longest) || f*1000 < 1) {
		v.refuse("a number of seconds above 0 and up to a week is expected here")
		return 0, false
	}
	return time.Duration(f * float64(time.Second)).Round(time.Millisecond), ok
}

// duration gives a time above 0 such as 30s.
func (v *value) duration() (time.Duration, bool) {
	if !v.is() {
		v.take()
		return 0, false
	}
	d, err := time.ParseDuration(v.scalar)
	if !v.plain() || err != nil || d < time.Millisecond || d > longest {
		v.refuse("a time such as 30s, above 0 and up to a week, is expected here")
		return 0, false
	}
	v.taken = true
	return d.Round(time.Millisecond), true
}

// flag gives a boolean, and whether there is one.
func (v *value) flag() (on, ok bool) {
	if !v.is() {
		v.take()
		return false, false
	}
	switch strings.ToLower(v.scalar) {
	case "true", "yes", "on", "1":
		on = true
	case "false", "no", "off", "0":
	default:
		v.refuse("true or false is expected here")
		return false, false
	}
	v.taken = true
	return on, true
}

// each gives the items of a list; a single value is a list of one.
func (v *value) each() []*value {
	switch {
	case v == nil:
		return nil
	case v.plain():
		return []*value{v}
	case v.shape == mapping:
		v.refuse("a list is expected here")
		return nil
	}
	v.taken = true
	return v.items
}

// pair is a member of a mapping.
type pair struct {
	key   string
	value *value
}

// pairs gives the members of a mapping in their order.
func (v *value) pairs() []pair {
	switch {
	case v == nil:
		return nil
	case v.shape != mapping && v.shape != nothing:
		v.refuse("a mapping is expected here")
		return nil
	}
	v.taken = true
	all := make([]pair, len(v.keys))
	for i, k := range v.keys {
		all[i] = pair{k, v.fields[k]}
	}
	return all
}

// holdsSecrets is the end of the path of a mapping whose keys may be secrets.
var holdsSecrets = regexp.MustCompile(`(?i)(^|[._-])(keys?|tokens?|secrets?|passwords?|credentials?)$`)

// under gives the path of a member or an item below path, which does not show a key that looks like a secret.
func under(path, name string) string {
	if concealed := config.Conceal(name); concealed != name {
		name = concealed
	} else if holdsSecrets.MatchString(path) && len(name) >= 8 && strings.ContainsAny(name, "0123456789") {
		name = config.Mask(name)
	}
	if name == "" || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) || c == '.' || c == '"' }) {
		name = strconv.Quote(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }
