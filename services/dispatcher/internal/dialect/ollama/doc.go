// Package ollama calls Ollama. Most requests go to its OpenAI-compatible endpoint as they are. That endpoint can't set the context window:
// what does not fit into the server's default, which may be as small as 4096 tokens, is silently cut off at its beginning. So a request
// that needs more goes to the native operation, which takes the window as an option, and is translated there and back.
package ollama
