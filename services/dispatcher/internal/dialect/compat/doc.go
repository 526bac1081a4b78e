// Package compat makes a request to Chat Completions fit for a provider that speaks OpenAI's protocol with habits of its own: it refuses
// members that others ignore, calls them differently, or wants the history of a conversation in a certain shape. Whoever asks for "auto"
// does not know which provider will answer, so its request must suit them all.
//
// The habits are data: one table of rules for each vendor. What no rule names keeps its bytes.
package compat
