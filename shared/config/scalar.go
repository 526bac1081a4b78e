package config

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// The functions below make readers: functions that set a value from a node, or report why not and leave the value as it is.

// text gives a scalar as it is written: words that YAML takes for numbers or booleans are fine where text is wanted.
func (n node) text() (string, bool) {
	if n.Kind != yaml.ScalarNode || n.null() {
		n.fail("must be text (got %s)", n.shape())
		return "", false
	}
	return strings.TrimSpace(n.Value), true
}

func text(p *string) func(node) {
	return func(n node) {
		s, ok := n.text()
		if !ok {
			return
		}
		if strings.Contains(s, "${") && !n.literal {
			n.warn("variables are not replaced here: they are in addresses, paths, keys and headers")
		}
		*p = s
	}
}

// name reads text that may not be empty.
func name(p *string) func(node) {
	return func(n node) {
		text(p)(n)
		if n.Kind == yaml.ScalarNode && *p == "" {
			n.fail("must not be empty")
		}
	}
}

// oneOf reads one of some words, in any case.
func oneOf[T ~string](p *T, words ...T) func(node) {
	return func(n node) {
		s, ok := n.text()
		if !ok {
			return
		}
		i := slices.IndexFunc(words, func(w T) bool { return strings.EqualFold(s, string(w)) })
		if i < 0 {
			list := make([]string, len(words))
			for i, w := range words {
				list[i] = string(w)
			}
			n.fail("must be one of %s (got %s)", strings.Join(list, ", "), n.shown())
			return
		}
		*p = words[i]
	}
}

func boolean(p *bool) func(node) {
	return func(n node) {
		switch strings.ToLower(n.Value) {
		case "true", "yes", "on", "1":
			*p = true
		case "false", "no", "off", "0":
			*p = false
		default:
			n.fail("must be true or false (got %s)", n.shown())
		}
	}
}

// integer reads a whole number within bounds.
func integer(p *int, low, high int) func(node) {
	return func(n node) {
		s := strings.TrimSpace(n.Value)
		i, err := strconv.Atoi(s)
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
	}
}

// limit reads a number of calls that may run at the same time; 0 is unlimited. It stays nil when the key is absent.
func limit(p **int) func(node) {
	return func(n node) {
		i := -1
		integer(&i, 0, math.MaxInt32)(n)
		if i >= 0 {
			*p = &i
		}
	}
}

// number reads a finite number within bounds.
func number(p *float64, low, high float64) func(node) {
	return func(n node) {
		f, err := strconv.ParseFloat(n.Value, 64)
		switch {
		case n.Kind != yaml.ScalarNode || err != nil || math.IsNaN(f) || math.IsInf(f, 0):
			n.fail("must be a number (got %s)", n.shown())
		case f < low:
			n.fail("must not be less than %g (got %s)", low, n.shown())
		case f > high:
			n.fail("must not be more than %g (got %s)", high, n.shown())
		default:
			*p = f
		}
	}
}

// duration reads a Go duration that is not negative.
func duration(p *time.Duration) func(node) {
	return func(n node) {
		d, err := time.ParseDuration(strings.TrimSpace(n.Value))
		switch {
		case n.Kind != yaml.ScalarNode || err != nil:
			n.fail("must be a duration such as 300ms, 30s or 5m (got %s)", n.shown())
		case d < 0:
			n.fail("must not be negative (got %s)", n.shown())
		default:
			*p = d
		}
	}
}

// positive reads a duration above zero.
func positive(p *time.Duration) func(node) {
	return func(n node) {
		d := time.Duration(-1)
		duration(&d)(n)
		switch {
		case d == 0:
			n.fail("must be more than zero (got %s)", n.shown())
		case d > 0:
			*p = d
		}
	}
}
