// Package memory keeps sessions small enough for prompts: an Optimizer puts a summary in the place of older messages, and Shorten shortens the
// history of one prompt for clients that ask for it.
package memory
