// Package slot counts the calls that run on each model of each provider and keeps them below a limit. The counter is the only truth about load:
// an upstream that answers 429 has failed, which is the business of the breaker.
//
// There is no queue. An acquisition takes a slot of the first candidate that has one, or it is refused at once. A slot is given back
// exactly once, however the call ends.
//
// Local counts within one process. Shared makes the limit hold over all dispatchers by leases in a key-value store.
package slot
