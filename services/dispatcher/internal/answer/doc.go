// Package answer is the hub between the protocols of providers and those of clients: an answer on its way is a sequence of typed events, each a
// chunk of Chat Completions that was read, not decoded, or made by a translator. Dialects give sources of them, surfaces write them; nothing
// between the two knows how either spells them.
package answer
