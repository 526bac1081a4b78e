package sessionwriter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"hydrallm/services/session-writer/internal/store"
	"hydrallm/shared/bus"
	"hydrallm/shared/contract"
	"hydrallm/shared/subject"
)

// facts is the stream in which turns wait until they are stored; *bus.Bus is it.
type facts interface {
	PublishFact(ctx context.Context, subj, id string, data []byte) error
	NextFact(ctx context.Context, subj string, from uint64) (f bus.Fact, ok bool, err error)
	LastFact(ctx context.Context) (uint64, error)
	PurgeFacts(ctx context.Context, subj string) error
}

// sessions reads and writes sessions so that whoever reads one sees every turn whose fact is in the stream, whether a batch with it was written or
// not, and by whom.
type sessions struct {
	store    *store.Store
	database *database // hears what becomes of each transaction
	facts    facts
	log      *slog.Logger
}

// portion is how many facts of a session are stored in one transaction. After a long outage there are thousands, more than there is time for at once: what
// is stored of them stays stored.
const portion = 128

// pending gives the facts of a session that may not be stored yet, in order, and the place in the stream up to which they are all. It stores those that are
// more than a portion, so that they become fewer even when ctx ends before they are all read.
func (s *sessions) pending(ctx context.Context, session string) (turns []contract.Turn, upTo uint64, err error) {
	if upTo, err = s.store.Applied(ctx, session); err != nil {
		return nil, 0, err
	}
	subj, known := subject.Turn(session, "*"), upTo
	for {
		f, ok, err := s.facts.NextFact(ctx, subj, upTo+1)
		if err == nil && !ok && upTo > 0 && upTo == known {
			last, err := s.facts.LastFact(ctx)
			if err == nil && last < upTo { // the stream was lost, and counts anew
				upTo, known = 0, 0
				continue
			}
			return nil, upTo, err
		}
		if err != nil || !ok {
			return turns, upTo, err
		}
		upTo = f.Sequence
		if t, err := readTurn(f); err == nil && t.Session == session { // what can't be read is buried by who writes the batches
			turns = append(turns, t)
		}
		if len(turns) == portion {
			if err := s.apply(ctx, session, turns, upTo); err != nil {
				return nil, upTo, err
			}
			turns = nil
		}
	}
}

// catchUp stores what is pending of a session.
func (s *sessions) catchUp(ctx context.Context, session string) error {
	turns, upTo, err := s.pending(ctx, session)
	if err != nil || len(turns) == 0 {
		return err
	}
	return s.apply(ctx, session, turns, upTo)
}

func (s *sessions) apply(ctx context.Context, session string, turns []contract.Turn, upTo uint64) error {
	err := s.store.CatchUp(ctx, session, turns, upTo)
	s.database.wrote(ctx, err)
	return err
}

// forget removes a session, from the stream too, so that nothing of it is left or comes back.
func (s *sessions) forget(ctx context.Context, session string) error {
	if err := s.catchUp(ctx, session); err != nil { // a question that is only a fact makes a session too
		return err
	}
	if err := s.facts.PurgeFacts(ctx, subject.Turn(session, "*")); err != nil {
		return err
	}
	return s.store.DeleteSession(ctx, session)
}

var errNoTurn = errors.New("not a turn")

// readTurn reads a fact.
func readTurn(f bus.Fact) (t contract.Turn, err error) {
	if err := json.Unmarshal(f.Data, &t); err != nil {
		return t, fmt.Errorf("%w: %w", errNoTurn, err)
	}
	switch t.Kind = contract.TurnKind(subject.Last(f.Subject)); t.Kind {
	case contract.TurnAsked, contract.TurnAnswered, contract.TurnFailed:
	default:
		return t, fmt.Errorf("%w: of kind %q", errNoTurn, t.Kind)
	}
	if t.Session == "" || t.RequestID == "" || f.Subject != subject.Turn(t.Session, string(t.Kind)) {
		return t, fmt.Errorf("%w of this subject", errNoTurn)
	}
	return t, nil
}

// publishLimit bounds the storing of a fact, of which each megabyte has as much once more.
const publishLimit = 5 * time.Second

// keepQuestion makes a fact of a question that the database did not take.
func (s *sessions) keepQuestion(ctx context.Context, r *contract.Request, messages []contract.Message) error {
	t := contract.Turn{Session: r.SessionID, RequestID: r.ID, Principal: r.Principal, Surface: r.Surface, At: r.ReceivedAt}
	for _, m := range messages {
		t.Add(m)
	}
	data, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encoding a question: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, publishLimit*time.Duration(1+len(data)>>20))
	defer cancel()
	return s.facts.PublishFact(ctx, subject.Turn(r.SessionID, string(contract.TurnAsked)), r.ID+"."+string(contract.TurnAsked), data)
}
