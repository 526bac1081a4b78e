// Package stream makes answers sound on their way through the hub. A sound event passes as it came; a broken one is repaired (bugs SSE, STR,
// TOOL); think tags are split off or removed (R-220..R-230); a whole answer becomes events, and events become a whole answer.
//
// It is pure code: events in, events out. Nothing is decoded that need not change, and an event that stays as it is costs nothing.
package stream
