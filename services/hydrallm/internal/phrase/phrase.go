// Package phrase words what commands say.
package phrase

import "strconv"

// Count gives a number of things, with a noun whose plural ends in s: 1 provider, 2 providers.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
