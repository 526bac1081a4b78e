package query_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/query"
)

// whatever the database gives, an answer shows UTC to the millisecond.
func TestTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 12, 0, 0, 120_000_000, time.UTC)
	for name, src := range map[string]any{"text": "2026-05-01T12:00:00.120Z", "time": at.In(time.FixedZone("", 3600))} {
		var got query.Time
		require.NoError(t, got.Scan(src), name)
		require.True(t, at.Equal(got.Time), name)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, `"2026-05-01T12:00:00.120Z"`, string(text), name)
		var back query.Time
		require.NoError(t, json.Unmarshal(text, &back))
		require.True(t, at.Equal(back.Time), name)
	}
	for name, src := range map[string]any{"no time": "yesterday", "number": 5, "nothing": nil} {
		require.Error(t, new(query.Time).Scan(src), name)
	}
}

func TestDocument(t *testing.T) {
	t.Parallel()
	for _, d := range []query.Document{"", `{"n":1.0}`, `[]`} {
		text, err := json.Marshal(struct{ D query.Document }{d})
		require.NoError(t, err)
		var back struct{ D query.Document }
		require.NoError(t, json.Unmarshal(text, &back))
		require.Equal(t, d, back.D)
	}
}
