package enricher

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
	"hydrallm/shared/telemetry"
)

const (
	category    = "WEB_ENRICH"
	recordLimit = 5 * time.Second // for storing an event; the request has gone on
)

// metadata is what an event says beside its sentence.
type metadata struct {
	SessionID string `json:"session_id,omitempty"`
	Length    int    `json:"length"` // characters of the text
	LatencyMS int64  `json:"latency_ms"`
}

// record tells of text that was put into a request: in the log, and as an event of the database.
func (e *Enricher) record(ctx context.Context, req *contract.Request, chars int, took time.Duration) {
	e.metrics.characters.Add(float64(chars))
	line := enrich.LogLine(chars, req.SessionID)
	telemetry.Line(ctx, e.log, line)
	if err := e.keep(ctx, req, line, metadata{SessionID: req.SessionID, Length: chars, LatencyMS: took.Milliseconds()}); err != nil {
		e.metrics.unrecorded.Inc()
		e.log.WarnContext(ctx, "storing an event", slog.String("category", category), slog.Any("error", err))
	}
}

func (e *Enricher) keep(ctx context.Context, req *contract.Request, line string, m metadata) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	id := req.ID + ".web"
	fact, err := json.Marshal(contract.Log{
		ID: id, Level: "INFO", Category: category, Message: line, RequestID: req.ID, Metadata: data, At: time.Now().UTC(),
	})
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	return e.bus.PublishFact(ctx, subject.Log(category), id, fact)
}
