package opencode

import (
	"net/http"
	"strings"
)

// model is a model in OpenCode's words; the zero model is the one that OpenCode is set to.
type model struct{ provider, id string }

// readModel splits the name of a model at its first slash, since what follows may have more of them.
func readModel(name string) (m model, ok bool) {
	if name == "" || strings.EqualFold(name, "auto") {
		return model{}, true
	}
	provider, id, found := strings.Cut(name, "/")
	return model{provider, id}, found && provider != "" && id != ""
}

func (m model) String() string {
	if m == (model{}) {
		return ""
	}
	return m.provider + "/" + m.id
}

func unknownModel(name string) failure {
	return newFailure(http.StatusNotFound, "ProviderModelNotFoundError", "Model not found: "+name+" is not of the form provider/model")
}
