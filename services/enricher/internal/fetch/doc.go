// Package fetch reads pages with plain HTTP, for addresses that come from strangers: every connection through the guard, everything bounded
// in time and size, whatever the other side sends.
package fetch
