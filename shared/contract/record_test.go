package contract_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func usages() map[string]contract.RequestRecord {
	at := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	return map[string]contract.RequestRecord{
		"empty": {},
		"full": {
			RequestID: "r1", TraceID: "0af7651916cd43dd8448eb211c80319c", SessionID: "s", Principal: "k:1", Endpoint: contract.EndpointChat, Model: "имя \"q\"\n", Provider: "p", Upstream: "u", UpstreamModel: "m",
			KeyIndex: 3, Status: "success", RoutingReason: contract.ReasonTokenCount, Stream: true, Prompt: 1, Completion: 2, Total: 1 << 40,
			LatencyMS: 5, FirstTokenMS: 6, At: at, Attempts: []contract.Attempt{
				{
					Delivery: math.MaxUint64, Ordinal: 2, Upstream: "a", Provider: "p", Model: "m", KeyIndex: 4, Outcome: contract.CallFailed, Reason: "http 429",
					Status: 429, DurationMS: 7, Prompt: 8, Completion: 9, Total: 17, Cached: 3, CostNanos: new(int64(0)), At: at,
					Headers: [][2]string{{"Cf-Ray", "8a\"b\u2028"}, {"Server", ""}},
				},
				{Outcome: contract.CallBegun, Until: at},
				{Outcome: contract.CallLost},
			},
		},
		"another zone": {At: at.In(time.FixedZone("x", 3600)), Model: "\u2028<&>"},
	}
}

// What is written by hand says the same as what reflection writes, and each reads the other.
func TestUsageSurvivesTheWay(t *testing.T) {
	t.Parallel()
	survives(t, usages(), (*contract.RequestRecord).AppendJSON, contract.ParseUsage, func(r *contract.RequestRecord) *time.Time { return &r.At })
}

func TestWhatIsNoUsage(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "x", "[]", "{", `{"request_id":1}`, `{"key_index":"1"}`, `{"prompt_tokens":1.5}`, `{"stream":1}`, `{"at":"yesterday"}`, `{"at":1}`,
		`{"attempts":{}}`, `{"attempts":[1]}`, `{"attempts":[{"status":"x"}]}`,
		`{"attempts":[{"headers":{}}]}`, `{"attempts":[{"headers":["a"]}]}`, `{"attempts":[{"headers":[["a"]]}]}`, `{"attempts":[{"headers":[["a",1]]}]}`,
		`{"attempts":[{"headers":[["a","b","c"]]}]}`, `{"trace_id":1}`, `{"attempts":[{"delivery":-1}]}`, `{"attempts":[{"cost_nanos":0.5}]}`, `{"attempts":[{"at":"soon"}]}`,
	} {
		_, err := contract.ParseUsage([]byte(text))
		require.ErrorIs(t, err, contract.ErrNotUsage, text)
	}
	u, err := contract.ParseUsage([]byte(`{"request_id":"r","model":null,"later":{"a":[1]}}`))
	require.NoError(t, err)
	require.Equal(t, contract.RequestRecord{RequestID: "r"}, u)
}

// what is known best of a call wins, in whatever order it is told.
func TestOutcomesSettle(t *testing.T) {
	t.Parallel()
	ends := []contract.Outcome{contract.CallSuccess, contract.CallFailed, contract.CallCancelled, contract.CallNone}
	ranks := [][]contract.Outcome{{contract.CallBegun}, {contract.CallLost}, ends}
	for i, worse := range ranks {
		for k, better := range ranks {
			for _, a := range worse {
				for _, b := range better {
					require.Equal(t, k > i, b.Settles(a), "%s after %s", b, a)
				}
			}
		}
	}
	for _, o := range ends {
		require.True(t, o.Ended() && o.Known())
	}
	require.False(t, contract.CallBegun.Ended() || contract.CallLost.Ended() || contract.Outcome("odd").Known())
}

func FuzzParseUsage(f *testing.F) {
	for _, u := range usages() {
		f.Add(u.AppendJSON(nil))
	}
	f.Add([]byte(`{"attempts":[{}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		u, err := contract.ParseUsage(text)
		if err != nil {
			require.ErrorIs(t, err, contract.ErrNotUsage)
			return
		}
		again, err := contract.ParseUsage(u.AppendJSON(nil))
		require.NoError(t, err)
		require.True(t, u.At.Equal(again.At))
		again.At = u.At
		require.Equal(t, u, again)
	})
}

func BenchmarkUsage(b *testing.B) {
	u := usages()["full"]
	text := u.AppendJSON(nil)
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			text = u.AppendJSON(text[:0])
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := contract.ParseUsage(text); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("reflection", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var u contract.RequestRecord
			if err := json.Unmarshal(text, &u); err != nil {
				b.Fatal(err)
			}
		}
	})
}
