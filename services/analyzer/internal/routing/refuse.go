package routing

import (
	"fmt"

	"hydrallm/shared/config"
	"hydrallm/shared/fault"
)

func noModel(message string) error {
	f := fault.New(fault.ModelNotFound, message)
	f.Param = "model"
	return f
}

func notFound(name string) error {
	return noModel(fmt.Sprintf("The model `%s` does not exist", fault.Shown(name)))
}

// notConfigured refuses a name that leads to a well-known provider that is not there.
func notConfigured(name, id string) error {
	if p := (config.Provider{ID: id}); p.Agent() {
		return noAgent(name, id)
	}
	return noModel(fmt.Sprintf("The model `%s` does not exist: the provider %s is not configured", fault.Shown(name), id))
}

func noAgent(name, agent string) error {
	if agent == "" {
		return notFound(name)
	}
	return noModel(fmt.Sprintf("The model `%s` does not exist: the local agent %s is not configured", fault.Shown(name), fault.Shown(agent)))
}

func nothingConfigured() error {
	return fault.New(fault.Failed, "No provider is configured for automatic routing: name one of the models that the gateway lists, "+
		"or configure a provider and put its id into routing.priority")
}

// mustName refuses to choose a model for embeddings: vectors of different models can't be compared.
func mustName(name string) error {
	return noModel(fmt.Sprintf("The model `%s` is no embedding model: name one, because vectors of different models can't be mixed", fault.Shown(name)))
}
