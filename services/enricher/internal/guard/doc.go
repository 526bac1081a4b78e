// Package guard keeps what fetches pages for strangers away from the network that it runs in.
//
// A Guard judges addresses and makes connections. A connection goes to an address that was judged in the same call: a name is looked up once,
// all its addresses must be allowed, and one of them is dialled as an address. So an answer of DNS that changes from one lookup to the next
// leads nowhere, and whoever connects through [Guard.DialContext] alone needs no check of its own.
//
// What it cannot know: that a public address leads back into its own network, by a router that does so or a server elsewhere that forwards.
package guard
