package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

const life = 30 * day

// response makes a fact of a response that goes on from another one.
func response(id, previous string, at time.Time) contract.StoredResponse {
	return contract.StoredResponse{
		ID: id, Previous: previous, Owner: owner, At: at, Input: []byte(`[{"role":"user","content":"q` + id + ` é \ud83d"}]`), Response: []byte(`{"id":"` + id + `","output":[]}`),
	}
}

func recordResponses(t *testing.T, s *Store, list ...contract.StoredResponse) int {
	t.Helper()
	n, err := s.RecordResponses(t.Context(), list, life)
	require.NoError(t, err)
	return n
}

func chainOf(t *testing.T, s *Store, id string, size int) string {
	t.Helper()
	chain, err := s.ResponseChain(t.Context(), id, size)
	require.NoError(t, err)
	ids := make([]string, len(chain))
	for i := range chain {
		ids[i] = chain[i].ID
	}
	return strings.Join(ids, " ")
}

// a response is stored once, however often its fact comes, and chains are trees.
func TestResponses(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		now := time.Now()
		a, b := response("a", "", now), response("b", "a", now)
		require.Equal(t, 2, recordResponses(t, s, b, a))
		require.Equal(t, 2, recordResponses(t, s, b, response("c", "b", now), response("d", "b", now)))
		require.Zero(t, recordResponses(t, s, a, b))
		again := a
		again.Response = []byte(`{}`)
		require.Zero(t, recordResponses(t, s, again))
		got, err := s.Response(t.Context(), "b")
		require.NoError(t, err)
		require.Equal(t, Response{ID: "b", Previous: "a", Owner: owner, Input: string(b.Input), Body: string(b.Response)}, got)
		_, err = s.Response(t.Context(), "x")
		require.ErrorIs(t, err, ErrNoResponse)

		require.Equal(t, "c b a", chainOf(t, s, "c", 1<<20))
		require.Equal(t, "d b a", chainOf(t, s, "d", 1<<20))
		require.Equal(t, "d b", chainOf(t, s, "d", len(b.Input)+len(b.Response)), "the one that is too much shows that it is")
		require.Empty(t, chainOf(t, s, "x", 1<<20))
	})
}

// what was deleted stays deleted, also when its fact comes late.
func TestDeleteResponse(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		now := time.Now()
		recordResponses(t, s, response("a", "", now), response("b", "a", now), response("c", "b", now))
		require.NoError(t, s.DeleteResponse(t.Context(), "b"))
		require.ErrorIs(t, s.DeleteResponse(t.Context(), "b"), ErrNoResponse)
		require.ErrorIs(t, s.DeleteResponse(t.Context(), "x"), ErrNoResponse)
		require.Zero(t, recordResponses(t, s, response("b", "a", now)))
		got, err := s.Response(t.Context(), "b")
		require.NoError(t, err)
		require.Equal(t, Response{ID: "b", Previous: "a", Owner: owner, Deleted: true}, got)
		require.Equal(t, "c b a", chainOf(t, s, "c", 1<<20), "the chain shows where it is broken")
	})
}

// a response expires, but not before those that go on from it.
func TestResponsesExpire(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		now := time.Now()
		recordResponses(t, s, response("old", "", now.Add(-life-time.Hour)), response("a", "", now.Add(-life+time.Hour)), response("b", "a", now.Add(-life+2*time.Hour)))
		recordResponses(t, s, response("other", "", now.Add(-life+time.Hour)))
		_, err := s.Response(t.Context(), "old")
		require.ErrorIs(t, err, ErrNoResponse)
		recordResponses(t, s, response("c", "b", now))
		pruned := func(after time.Duration) int64 {
			p, err := s.Prune(t.Context(), generous(), now.Add(after))
			require.NoError(t, err)
			return p.Responses
		}
		require.Equal(t, int64(1), pruned(0))
		require.Equal(t, int64(1), pruned(day), "the one that nobody went on from")
		require.Equal(t, "c b a", chainOf(t, s, "c", 1<<20))
		require.Equal(t, int64(3), pruned(life+day))
		require.Zero(t, countRows(t, s, "responses"))
	})
}

// a long chain is read at once.
func TestLongChain(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		const n = 300
		list := make([]contract.StoredResponse, n)
		for i := range list {
			previous := ""
			if i > 0 {
				previous = fmt.Sprintf("r%03d", i-1)
			}
			list[i] = response(fmt.Sprintf("r%03d", i), previous, time.Now())
		}
		require.Equal(t, n, recordResponses(t, s, list...))
		require.Equal(t, n, strings.Count(chainOf(t, s, "r299", 1<<24), "r"))
	})
}
