// Package sessionheader gives each dialogue an id that stays the same while the dialogue grows, for providers that want to see which requests
// belong together (session_header, R-200..R-211).
//
// A dialogue is known by the chain of hashes of its prefixes, starting at the first message of the user: h1 = H(m1), hi = H(h(i-1) || mi).
// A request belongs to the conversation that has seen the longest of its prefixes; else it begins one, and the hash of its whole history is the
// id. The registry need not keep the chains to find that conversation: every chain in which a prefix occurs also begins with h1, and no two
// conversations ever hold the same h1, because the second dialogue with that first message would have matched the first conversation. So the longest
// known prefix and h1 always lead to the same conversation, and h1 is all that is kept. Later messages may be edited, regenerated or enriched
// freely; a history whose beginning was cut off is a new conversation. A test runs the registry beside one that keeps whole chains.
package sessionheader
