// Package mockllm is a small OpenAI-compatible upstream without a model: the same question always gets the same answer, a word at a time. It
// serves demonstrations and tests of a whole gateway.
package mockllm
