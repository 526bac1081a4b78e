// Package stream turns what an upstream sends into what the client gets. A sound event stream passes byte for byte; a broken one is repaired
// (bugs SSE, STR, TOOL); think tags are split off or removed (R-220..R-230); a JSON answer becomes events, and events become a JSON answer.
//
// It is pure code: events in, bytes out. Nothing is decoded that need not change, and a chunk that stays as it is costs one scan and one copy.
package stream
