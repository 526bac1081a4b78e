package openclaw

import (
	"cmp"
	"strings"
)

// target is who is to answer.
type target struct {
	agent string // "" for the one that OpenClaw is set to
	model string // the model behind it; "" for its own
	bare  bool   // the agent was named without saying that it is one
}

// readTarget reads the name of a model.
func readTarget(name string) target {
	switch strings.ToLower(name) {
	case "", "auto", "default", "openclaw":
		return target{}
	}
	for _, prefix := range [...]string{"openclaw/", "openclaw:", "agent:"} {
		if id, ok := strings.CutPrefix(name, prefix); ok {
			if id == "default" {
				id = ""
			}
			return target{agent: id}
		}
	}
	if strings.Contains(name, "/") {
		return target{model: name}
	}
	return target{agent: name, bare: true}
}

// name is what the gateway calls the agent.
func (t target) name() string { return "openclaw/" + cmp.Or(t.agent, "default") }
