package dispatcher

import (
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/config"
)

// dialects makes what speaks to providers.
type dialects struct{ client *upstream.Client }

func (d dialects) of(_ config.Provider, _ bool) dialect.Dialect {
	return dialect.OpenAI{Client: d.client}
}
