// Package mockllm is a small OpenAI-compatible upstream without a model. It does what the last message of the user says: answer, think, call
// tools, fail. The same request always gets the same answer. It serves demonstrations, examples of agents and tests of a whole gateway;
// docs/mock.md describes what it understands.
//
// A request becomes a turn (script.go reads the message, reply.go decides), which is sent whole (whole.go) or as a stream (stream.go).
package mockllm
