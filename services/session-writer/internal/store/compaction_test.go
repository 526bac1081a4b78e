package store

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// a summary takes the place of the messages that it stands for, before the ones that stay; when one of them is not there any more
// nothing changes.
func TestCompaction(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i := range 3 {
			ask(t, s, "a", fmt.Sprint(i), fmt.Sprintf("q%d-------", i))
			apply(t, s, answered("a", fmt.Sprint(i), fmt.Sprintf("a%d-------", i)))
		}
		large, err := s.Large(t.Context(), []string{"a", "none"}, 11)
		require.NoError(t, err)
		require.Equal(t, []string{"a"}, large)
		large, err = s.Large(t.Context(), []string{"a"}, 12)
		require.NoError(t, err)
		require.Empty(t, large)

		messages, err := s.Context(t.Context(), "a")
		require.NoError(t, err)
		require.Len(t, messages, 6)
		ask(t, s, "a", "meanwhile", "meanwhile")
		c := Compaction{Removed: messages[:3], Message: `{"role":"system","content":"sum"}`, Summary: "sum"}
		done, err := s.Compact(t.Context(), "a", c)
		require.NoError(t, err)
		require.True(t, done)
		apply(t, s, answered("a", "meanwhile", "came"))
		want := []string{c.Message, said("a1-------"), user("q2-------"), said("a2-------"), user("meanwhile"), said("came")}
		require.Equal(t, want, ask(t, s, "a", "last", "?"))
		list := messagesOf(t, s, "a")
		require.Equal(t, "compaction", list[0].Parts[0].Type)
		require.JSONEq(t, `{"auto":true,"overflow":false,"summary":"sum","compressed_count":3,"token_saving":5}`, string(list[0].Parts[0].Data))
		one, err := s.Session(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, [...]int64{7, 1}, [...]int64{one.MessageCount, one.SummaryTokens})

		done, err = s.Compact(t.Context(), "a", c)
		require.NoError(t, err)
		require.False(t, done, "the same once more")
		require.Equal(t, want, ask(t, s, "a", "last", "?"))
		done, err = s.Compact(t.Context(), "none", c)
		require.NoError(t, err)
		require.False(t, done)

		// the second one takes the first in.
		messages, err = s.Context(t.Context(), "a")
		require.NoError(t, err)
		done, err = s.Compact(t.Context(), "a", Compaction{Removed: messages[:4], Message: `{"role":"system","content":"both"}`, Summary: "both"})
		require.NoError(t, err)
		require.True(t, done)
		require.Equal(t, []string{`{"role":"system","content":"both"}`, user("meanwhile"), said("came")}, ask(t, s, "a", "last", "?"))
	})
}
