// Package opencode lets OpenCode answer chat completions: through the server that "opencode serve" runs, or, where no server can be
// reached, through the program itself.
//
// OpenCode is an agent, not a model. It has instructions and a history of its own, so each request is a session of its own that ends with
// it: the conversation becomes the text of one message, the system messages become its instructions, and files go along as data URLs. Its
// tools are switched off, and what it asks permission for is refused. What the client says about temperature, length or tools has no
// counterpart. While the turn runs, OpenCode's events bring the text; that they are complete, the answer to the message tells.
//
// OpenCode repeats a failed call of its provider for as long as it takes. Here the first such failure ends the turn: whoever routes
// requests has other providers to try.
package opencode
