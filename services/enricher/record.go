package enricher

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
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

// record tells the database of what was fetched and searched for a request, and of text that was put into it. The request has
// gone on.
func (e *Enricher) record(ctx context.Context, w *bus.Work, added *enrich.Result, took time.Duration) {
	if len(added.Visits) == 0 {
		return
	}
	req := w.Request
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordLimit)
	defer cancel()
	if added.Body != nil {
		e.metrics.characters.Add(float64(added.Chars))
		e.keep(ctx, subject.Log(category), req.ID+".web", contract.Log{
			ID: req.ID + ".web", Level: "INFO", Category: category, Message: enrich.LogLine(added.Chars, req.SessionID), RequestID: req.ID, At: time.Now().UTC(),
			Metadata: encoded(metadata{SessionID: req.SessionID, Length: added.Chars, LatencyMS: took.Milliseconds()}),
		})
	}
	e.keep(ctx, subject.WebRecorded, fmt.Sprintf("%s.web.%d", req.ID, w.Delivery), contract.WebRecord{
		RequestID: req.ID, SessionID: req.SessionID, Delivery: w.Delivery, Visits: added.Visits,
	})
}

// keep stores a fact.
func (e *Enricher) keep(ctx context.Context, subj, id string, fact any) {
	if err := e.bus.PublishFact(ctx, subj, id, encoded(fact)); err != nil {
		e.metrics.unrecorded.Inc()
		e.log.WarnContext(ctx, "storing a fact", slog.String("subject", subj), slog.Any("error", err))
	}
}

// encoded gives a fact as JSON. What is in it can be encoded.
func encoded(fact any) []byte {
	data, _ := json.Marshal(fact) //nolint:errchkjson // plain fields
	return data
}
