package dispatcher

import (
	"context"
	"encoding/json"
	"fmt"

	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// turns makes facts of what is answered in sessions.
type turns struct{ bus *bus.Bus }

// Keep returns when the fact is stored. One of the same request and kind is the same fact.
func (t turns) Keep(ctx context.Context, turn *contract.Turn) error {
	data, err := json.Marshal(turn)
	if err != nil {
		return fmt.Errorf("encoding a turn: %w", err)
	}
	return t.bus.PublishFact(ctx, subject.Turn(turn.Session, string(turn.Kind)), turn.RequestID+"."+string(turn.Kind), data)
}
