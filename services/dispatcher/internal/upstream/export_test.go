//go:build unix

package upstream

// Heard lets tests see what a client sees of a connection that it keeps.
var Heard = heard
