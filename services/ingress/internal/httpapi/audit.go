package httpapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/fault"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
)

// auditCategory is the category of the events that say what operators changed.
const auditCategory = "AUDIT"

// auditLimit bounds the wait for NATS to take the event.
const auditLimit = 5 * time.Second

// audited is what an event says beside its sentence. It holds nothing of the body of the request but what its handler notes.
type audited struct {
	Route  string         `json:"route"`
	ID     string         `json:"id,omitempty"` // that the path names; its beginning when nothing was changed
	From   string         `json:"from"`         // address of the client
	Status int            `json:"status"`
	Notes  map[string]any `json:"notes,omitempty"`
}

// note has the event of this exchange say something more. It must hold no secret.
func (x *exchange) note(name string, value any) {
	if x.notes == nil {
		x.notes = map[string]any{}
	}
	x.notes[name] = value
}

// audit keeps in the log and in the events who changed what, and whether it was done. It is done by then: that nobody will read of it is a warning.
func (a *API) audit(x *exchange, r adminRoute, err error) {
	route := r.method + " " + prefixAdmin + r.path
	e := audited{Route: route, ID: fault.Shown(x.id), From: x.from().String(), Status: x.Response.StatusCode(), Notes: x.notes}
	level, word := slog.LevelInfo, "INFO"
	if err != nil {
		if x.id != "" {
			e.ID = config.Mask(x.id) // nothing may have this id: somebody may have taken a key for it
		}
		e.Status = fault.From(err).Status()
		level, word = slog.LevelWarn, "WARNING"
	}
	ctx := telemetry.WithRequest(a.Queries(), x.rid)
	telemetry.Event(ctx, a.Log, level, "admin", "route", route, "id", e.ID, "from", e.From, "status", e.Status)
	if err := a.publishAudit(ctx, x.rid, word, e); err != nil {
		a.Log.WarnContext(ctx, "storing what an operator changed", slog.Any("error", err))
	}
}

func (a *API) publishAudit(ctx context.Context, rid, level string, e audited) error {
	meta, err := json.Marshal(e)
	if err != nil {
		return err
	}
	data, err := json.Marshal(contract.Log{
		ID: rid + ".audit", Level: level, Category: auditCategory, Message: e.Route, RequestID: rid, Metadata: meta, At: time.Now(),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, auditLimit)
	defer cancel()
	return a.Bus.PublishFact(ctx, subject.Log(auditCategory), rid+".audit", data)
}
