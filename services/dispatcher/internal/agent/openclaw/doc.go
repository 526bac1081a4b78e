// Package openclaw lets agents of OpenClaw answer chat completions: through the OpenAI-compatible endpoint of its gateway, or through its
// program where there is no such endpoint.
//
// The endpoint is off unless the operator of OpenClaw switches it on (gateway.http.endpoints.chatCompletions.enabled). The program knows
// another way to a gateway that runs; where none runs, it does the work itself. The program takes its message from a file only, and no
// attachments.
//
// In OpenClaw's words a model is an agent. What a request calls its model means
//
//	"", "auto", "default"           the agent that OpenClaw is set to
//	"openclaw", "openclaw/ID",
//	"openclaw:ID", "agent:ID"       that agent
//	"PROVIDER/MODEL"                the agent that OpenClaw is set to, with this model behind it
//	"ID"                            that agent; in a request for embeddings, a model
//
// Each request is a session of its own: the member "user", by which OpenClaw would tell sessions apart, is not sent, since the whole
// conversation is in the request already.
//
// Whoever may use the gateway of OpenClaw can do whatever its agents can, so it belongs on the loopback interface.
package openclaw
