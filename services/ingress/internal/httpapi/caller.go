package httpapi

import (
	"log/slog"

	"github.com/valyala/fasthttp"
)

// caller is what the log tells of who asked for what. It outlives the exchange.
type caller struct {
	log                       *slog.Logger
	rid, route, model, client string
	key                       string // name of the client key; "" = none
}

func (x *exchange) caller() caller {
	return caller{log: x.api.Log, rid: x.rid, route: string(x.route), model: shown(x.model), client: x.from().String(), key: x.keyName()}
}

// refused logs that a client got an error although no upstream was asked. Path and body are not shown.
func (c caller) refused(status int, code string, cause error) {
	attrs := []any{slog.String("rid", c.rid), slog.Int("status", status), slog.String("code", code), slog.String("route", c.route)}
	if cause != nil {
		attrs = append(attrs, slog.Any("error", cause))
	}
	if cause != nil && status >= fasthttp.StatusInternalServerError { // for the whole crowd it is one reason, so that nobody is named
		c.log.Warn("request refused", attrs...)
		return
	}
	if c.key != "" {
		attrs = append(attrs, slog.String("client_key", c.key))
	}
	if c.model != "" {
		attrs = append(attrs, slog.String("model", c.model))
	}
	c.log.Info("request refused", append(attrs, slog.String("client", c.client))...)
}

// keyName is the name of the client key, "" for none.
func (x *exchange) keyName() string {
	if x.key == nil {
		return ""
	}
	return x.key.Name
}
