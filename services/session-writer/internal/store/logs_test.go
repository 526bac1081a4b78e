package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
	"hydrallm/shared/query"
)

func event(i int) contract.Log {
	return contract.Log{
		Level: "INFO", Category: "ROUTING", Message: fmt.Sprintf("event %d", i), RequestID: "r1",
		Metadata: json.RawMessage(`{"b":1,"a":[true,null]}`), At: at.Add(time.Duration(i) * time.Millisecond),
	}
}

func TestLogsAreNewestFirst(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		events := make([]contract.Log, rowsPerStatement+600)
		for i := range events {
			events[i] = event(i)
		}
		n, err := s.RecordLogs(t.Context(), events)
		require.NoError(t, err)
		require.Equal(t, len(events), n)
		for _, tc := range []struct{ limit, want int }{{2, 2}, {0, 50}, {-5, 1}, {1 << 40, MaxLogs}} {
			got, err := s.Logs(t.Context(), limited(tc.limit))
			require.NoError(t, err)
			require.Len(t, got, tc.want)
			require.Equal(t, "event 1099", got[0].Message)
		}
		got, err := s.Logs(t.Context(), limited(1))
		require.NoError(t, err)
		got[0].ID = 7
		text, err := json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, `[{"id":7,"level":"INFO","category":"ROUTING","message":"event 1099","request_id":"r1","metadata":{"b":1,"a":[true,null]},`+
			`"created_at":"`+events[len(events)-1].At.Format(query.TimeLayout)+`"}]`, string(text))

		require.NoError(t, s.ClearLogs(t.Context()))
		got, err = s.Logs(t.Context(), limited(10))
		require.NoError(t, err)
		text, err = json.Marshal(got)
		require.NoError(t, err)
		require.Equal(t, `[]`, string(text))
	})
}

func TestRepeatedLogIsStoredOnce(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		first, later := event(1), event(1)
		later.At = later.At.Add(time.Nanosecond)
		n, err := s.RecordLogs(t.Context(), []contract.Log{first, later, first})
		require.NoError(t, err)
		require.Equal(t, 2, n)
		n, err = s.RecordLogs(t.Context(), []contract.Log{later, event(2)})
		require.NoError(t, err)
		require.Equal(t, 1, n)
		require.Equal(t, 3, countRows(t, s, "system_logs"))
	})
}

// what has an id is stored once, whatever else it says.
func TestLogWithAnIDIsStoredOnce(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		first, second, other := event(1), event(2), event(1)
		first.ID, second.ID, other.ID = "r1.routing", "r1.routing", "r2.routing"
		n, err := s.RecordLogs(t.Context(), []contract.Log{first, second, event(1), other})
		require.NoError(t, err)
		require.Equal(t, 3, n)
		n, err = s.RecordLogs(t.Context(), []contract.Log{second})
		require.NoError(t, err)
		require.Zero(t, n)
		got, err := s.Logs(t.Context(), limited(3))
		require.NoError(t, err)
		for _, l := range got {
			require.Equal(t, "event 1", l.Message, "the first one stays")
		}
	})
}

func TestLogsTakeHostileContent(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metadata string
		want     string
	}{
		"none":             {"", `null`},
		"null":             {`null`, `null`},
		"text":             {`"text"`, `"text"`},
		"escaped NUL":      {`{"a":"\u0000"}`, `{"a":"\u0000"}`},
		"lone surrogate":   {`{"a":"\ud800"}`, `{"a":"\ud800"}`},
		"not UTF-8":        {"{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}"},
		"duplicate keys":   {`{"a":1,"a":2}`, `{"a":1,"a":2}`},
		"long number":      {`1e400`, `1e400`},
		"longer than kept": {`"` + strings.Repeat("x", maxDocument) + `"`, `{"dropped":"too long"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachBackend(t, func(t *testing.T, s *Store) {
				t.Helper()
				e := event(1)
				e.Message, e.Metadata = "\x00\xff"+strings.Repeat("x", 2*maxMessage), json.RawMessage(tc.metadata)
				n, err := s.RecordLogs(t.Context(), []contract.Log{e})
				require.NoError(t, err)
				require.Equal(t, 1, n)
				got, err := s.Logs(t.Context(), limited(1))
				require.NoError(t, err)
				require.Len(t, got[0].Message, maxMessage)
				text, err := got[0].Metadata.MarshalJSON()
				require.NoError(t, err)
				require.Equal(t, tc.want, string(text))
			})
		})
	}
}

// A document that one of the databases may refuse must not read as a trouble that passes.
func TestMalformedMetadataIsRejectedOrKept(t *testing.T) {
	t.Parallel()
	eachBackend(t, func(t *testing.T, s *Store) {
		t.Helper()
		for i, raw := range []string{`{"a":`, strings.Repeat("[", 8000) + strings.Repeat("]", 8000)} {
			e := event(i)
			e.Metadata = json.RawMessage(raw)
			if _, err := s.RecordLogs(t.Context(), []contract.Log{e}); err != nil {
				require.ErrorIs(t, err, ErrRejected)
			}
		}
	})
}
