// Package stream turns what an upstream sends into what the client gets: a sound event stream passes byte for byte, a broken one is
// repaired, think tags are split off, JSON becomes events and events become JSON. It is pure code: events in, bytes out.
package stream
