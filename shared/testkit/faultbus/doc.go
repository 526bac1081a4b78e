// Package faultbus is a proxy in front of a NATS server that loses, repeats, delays and reorders messages which its clients publish. A publisher that
// retries, a connection that breaks while a message is under way: what a network does to NATS now and then, it does often and on purpose.
package faultbus
