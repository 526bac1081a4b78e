package sessionheader

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"
)

// KV is a store that all dispatchers share. Its compare-and-swap must be linearizable. The store should forget values that were not
// written for MaxIdle and a minute.
type KV interface {
	// Get gives the value of a key and its revision; revision 0 means that there is none.
	Get(ctx context.Context, key string) (value []byte, revision uint64, err error)
	// Swap stores value if the key still has the given revision, where 0 means that it must not exist. It gives the new revision, or 0 when
	// somebody else was faster; that is no error.
	Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
}

const (
	// lag is how old what the store says of a conversation may be. A dialogue in use costs the store one write per lag and dispatcher, and its
	// end is known to that accuracy.
	lag = 30 * time.Second

	storeTimeout = time.Second // of all operations for one request
)

// Shared agrees on the conversations with all dispatchers that use the same store, so that the ids of a dialogue do not flap between them.
// The limit MaxSessions bounds what it keeps here; the store bounds its size and the age of its values itself.
type Shared struct {
	kv    KV
	log   *slog.Logger
	table table
}

// NewShared makes a Source on top of a store. It starts nothing.
func NewShared(kv KV, log *slog.Logger) *Shared { return &Shared{kv: kv, log: log} }

// ID implements Source. While the store is out of reach, ids are those of this process alone: a request never fails for its header.
func (s *Shared) ID(ctx context.Context, messages []byte) (string, bool) {
	d, ok := readDialogue(messages)
	if !ok {
		return "", false
	}
	known, found := s.table.use(d.root)
	if found && time.Since(known.synced) < lag {
		return known.id, true
	}
	if !found {
		known.id = d.id()
	}
	id, err := s.agree(ctx, d.root, known.id)
	if err != nil {
		if ctx.Err() == nil {
			s.log.Warn("dialogue ids can't be shared", slog.Any("error", err))
		}
		return s.table.add(d.root, known).id, true
	}
	s.table.set(d.root, affinity{id: id, synced: time.Now()})
	return id, true
}

// stored is the value of a conversation in the store.
type stored struct {
	ID   string `json:"id"`
	Used int64  `json:"used"` // Unix milliseconds of the last use, a lag at most behind
}

// agree gives the id that the store has for a dialogue, or brings ours in.
func (s *Shared) agree(ctx context.Context, r root, ours string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	key := "dialogue." + hex.EncodeToString(r[:])
	for {
		value, revision, err := s.kv.Get(ctx, key)
		if err != nil {
			return "", fmt.Errorf("reading a dialogue: %w", err)
		}
		now := time.Now()
		next := stored{ID: ours, Used: now.UnixMilli()}
		if was, ok := decode(value); ok {
			idle := now.Sub(time.UnixMilli(was.Used))
			if idle.Abs() < lag {
				return was.ID, nil
			}
			if idle < MaxIdle+lag {
				next.ID = was.ID
			}
		}
		won, err := s.kv.Swap(ctx, key, next.encode(), revision)
		if err != nil {
			return "", fmt.Errorf("writing a dialogue: %w", err)
		}
		if won != 0 {
			return next.ID, nil
		}
	}
}

// decode reads a value. One that is not ours counts as none and will be replaced: an id is not worth a failed request.
func decode(value []byte) (s stored, ok bool) {
	if len(value) == 0 || json.Unmarshal(value, &s) != nil {
		return stored{}, false
	}
	raw, err := hex.DecodeString(s.ID)
	return s, err == nil && len(raw) == idBytes
}

func (s stored) encode() []byte {
	value, err := json.Marshal(s)
	if err != nil { // a string and an integer always marshal
		panic(fmt.Sprintf("encoding a dialogue: %v", err))
	}
	return value
}
