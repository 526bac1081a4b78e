// Package fakellm is a scripted LLM upstream for tests. It listens on a real TCP port of the loopback interface, gives the answers it was
// told to give, however broken, and remembers what it was asked.
package fakellm
