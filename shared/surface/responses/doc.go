// Package responses is what all services need of the surface of OpenAI's Responses: reading a request, saying it in Chat Completions, and errors. It is pure
// code over bytes. What it keeps of a request aliases the body.
//
// A conversation is a list of items there. Several may be one message of Chat Completions: the text of the model and the calls that follow it. Results stand
// anywhere behind their calls; in Chat Completions they follow them at once.
package responses
