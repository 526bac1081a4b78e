// Package classify says what an upstream's answer means: whose fault it is, what happens to the key, the breaker and the request, and how
// long to stay away. It is the only place that knows; every path of the dispatcher asks it.
//
// The HTTP status and structured error codes decide. The text of a message is read only where providers say the important part nowhere
// else, and a text that would cost a key its place must stand at the start of the message, because messages can quote what a client sent.
//
// The package is pure: no I/O, no state, and nothing of a body is kept beyond the bounded public message.
package classify
