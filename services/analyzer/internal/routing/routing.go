// Package routing decides which model serves a request. It is pure: the same request over the same data gives the same decision, without
// network, disk or clock.
package routing

import (
	"fmt"

	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
)

// Catalogue holds the models of the configuration that can be served. It is read-only and safe for concurrent use.
type Catalogue struct{ models map[string]struct{} }

// NewCatalogue makes a catalogue of exact names.
func NewCatalogue(names ...string) *Catalogue {
	c := &Catalogue{models: make(map[string]struct{}, len(names))}
	for _, name := range names {
		c.models[name] = struct{}{}
	}
	return c
}

// longestName bounds how much of a name that a client sent is sent back.
const longestName = 200

// Decide resolves the model name as the client sent it. The error is a model_not_found fault that names the model.
func (c *Catalogue) Decide(model string) (contract.Decision, error) {
	if _, ok := c.models[model]; ok {
		return contract.Decision{Model: model, Reason: contract.ReasonModelHint, Strict: true, Catalogue: true}, nil
	}
	f := fault.New(fault.ModelNotFound, fmt.Sprintf("The model `%s` does not exist", shorten(model)))
	f.Param = "model"
	return contract.Decision{}, f
}

func shorten(name string) string {
	if r := []rune(name); len(r) > longestName {
		return string(r[:longestName]) + "..."
	}
	return name
}
