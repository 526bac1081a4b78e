// Package breaker keeps requests away from channels that are known to be broken. One implementation serves both presets: failures in
// a row with a single probe afterwards, for the key pool of a provider, and failures inside a sliding window, for a channel of the
// configuration. It accounts for failures only; load is the business of slots (C-08).
//
// A call takes a Permit before it sends anything and ends it in exactly one way. Looking at a breaker never changes it, so the scan for
// usable tiers can't take the one probe away. State lives in memory; openings of other dispatchers are taken in with Observe.
package breaker
