package config

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"

	"hydrallm/shared/contract"
)

// text gives a scalar as it is written: words that YAML takes for numbers or booleans are fine where text is wanted.
func (n node) text() (string, bool) {
	if n.Kind != yaml.ScalarNode || n.null() {
		n.fail("must be text (got %s)", n.shape())
		return "", false
	}
	return strings.TrimSpace(n.Value), true
}

// visible refuses text with control characters, and warns of others that nobody can see: whoever types such a name does not hit it.
func (n node) visible(s string, ok bool) (string, bool) {
	for _, c := range s {
		switch {
		case unicode.IsControl(c):
			n.fail("holds the control character %U", c)
			return "", false
		case unicode.Is(unicode.Cf, c):
			n.warn("holds the character %U, which can't be seen", c)
		}
	}
	return s, ok
}

func text(p *string) kind {
	return kind{name: "text", at: p, read: func(n node) {
		s, ok := n.visible(n.text())
		if !ok {
			return
		}
		if strings.Contains(s, "${") && !n.literal {
			n.warn("variables are not replaced here: they are in addresses, paths, keys and headers")
		}
		*p = s
	}}
}

// name is text that may not be empty.
func name(p *string) kind {
	return kind{name: "text", at: p, read: func(n node) {
		text(p).read(n)
		switch size := len(strings.TrimSpace(n.Value)); {
		case n.Kind == yaml.ScalarNode && size == 0:
			n.fail("must not be empty")
		case size > contract.MaxName:
			n.fail("must not be longer than %d bytes (got %d): no request could name it", contract.MaxName, size)
		}
	}}
}

// oneOf is one of some words, in any case.
func oneOf(p *string, words ...string) kind {
	return kind{name: "`" + strings.Join(words, "`, `") + "`", at: p, read: func(n node) {
		s, ok := n.text()
		if !ok {
			return
		}
		i := slices.IndexFunc(words, func(w string) bool { return strings.EqualFold(s, w) })
		if i < 0 {
			n.fail("must be one of %s (got %s)%s", strings.Join(words, ", "), n.shown(), suggestion(s, words))
			return
		}
		*p = words[i]
	}}
}

func boolean(p *bool) kind {
	return kind{name: "boolean", at: p, read: func(n node) {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on", "1":
			*p = true
		case "false", "no", "off", "0":
			*p = false
		default:
			n.fail("must be true or false (got %s)", n.shown())
		}
	}}
}

// scientific is how other programs write large whole numbers in YAML, such as 3.3554432e+07.
var scientific = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?[eE]\+?[0-9]+$`)

// integer is a whole number within bounds.
func integer(p *int, low, high int) kind {
	name := fmt.Sprintf("%d to %d", low, high)
	if high >= math.MaxInt16 && high != math.MaxUint16 { // nobody comes near it
		name = fmt.Sprintf("number from %d on", low)
	}
	return kind{name: name, at: p, read: func(n node) {
		text := strings.TrimSpace(n.Value)
		i, err := strconv.Atoi(text)
		if f, ferr := strconv.ParseFloat(text, 64); err != nil && ferr == nil && scientific.MatchString(text) && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			i, err = int(f), nil
		}
		switch {
		case n.Kind != yaml.ScalarNode || err != nil:
			n.fail("must be a whole number from %d to %d (got %s)", low, high, n.shown())
		case i < 0 && low == 0:
			n.fail("must not be negative (got %d)", i)
		case i < low || i > high:
			n.fail("must be from %d to %d (got %d)", low, high, i)
		default:
			*p = i
		}
	}}
}

// limit is a number of calls that may run at the same time; 0 is unlimited. It stays nil when the key is absent.
func limit(p **int) kind {
	return kind{name: "number or null", read: func(n node) {
		i := -1
		integer(&i, 0, math.MaxInt32).read(n)
		if i >= 0 {
			*p = &i
		}
	}}
}

// number is a finite number from 0 to high.
func number(p *float64, high float64) kind {
	name := fmt.Sprintf("0 to %g", high)
	if high == math.MaxFloat64 {
		name = "number from 0 on"
	}
	return kind{name: name, at: p, read: func(n node) {
		f, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || math.IsInf(f, 0):
			n.fail("must be a number (got %s)", n.shown())
		case f < 0:
			n.fail("must not be less than 0 (got %s)", n.shown())
		case f > high:
			n.fail("must not be more than %g (got %s)", high, n.shown())
		default:
			*p = f
		}
	}}
}

// duration is a Go duration that is not negative.
func duration(p *time.Duration) kind {
	return kind{name: "duration", at: p, read: func(n node) {
		d, err := time.ParseDuration(strings.TrimSpace(n.Value))
		switch {
		case n.Kind != yaml.ScalarNode || err != nil:
			n.fail("must be a duration such as 300ms, 30s or 5m (got %s)", n.shown())
		case d < 0:
			n.fail("must not be negative (got %s)", n.shown())
		default:
			*p = d
		}
	}}
}

// positive is a duration above zero.
func positive(p *time.Duration) kind {
	return kind{name: "duration above 0", at: p, read: func(n node) {
		d := time.Duration(-1)
		duration(&d).read(n)
		switch {
		case d == 0:
			n.fail("must be more than zero (got %s)", n.shown())
		case d > 0:
			*p = d
		}
	}}
}

// hours is a duration above zero of at most some hours.
func hours(p *time.Duration, most int) kind {
	return kind{name: fmt.Sprintf("duration above 0, at most %dh", most), at: p, read: func(n node) {
		var d time.Duration
		positive(&d).read(n)
		switch {
		case d > time.Duration(most)*time.Hour:
			n.fail("must be at most %dh (got %s)", most, n.shown())
		case d > 0:
			*p = d
		}
	}}
}

// whole is a whole number of some unit, at least low of it.
func whole(p *time.Duration, unit time.Duration, low int) kind {
	return kind{read: func(n node) {
		i := -1
		integer(&i, low, int(math.MaxInt32*time.Second/unit)).read(n)
		if i >= 0 {
			*p = time.Duration(i) * unit
		}
	}}
}
