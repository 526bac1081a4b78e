package contract_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

func TestRequestSurvivesTheWay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	tests := map[string]contract.Request{
		"received": {
			ID: "r1", StartBy: at.Add(30 * time.Second).Truncate(time.Millisecond).Local(), Ingress: "i1", Operation: contract.Chat, Surface: contract.SurfaceChat,
			Model: "имя/модели \"q\"\r\n", Stream: true, IncludeUsage: true, SessionID: "s", ReceivedAt: at,
		},
		"decided": {
			ID: "r2", StartBy: time.UnixMilli(0), ReceivedAt: at,
			Decision: &contract.Decision{Model: "m", Reason: contract.ReasonModelHint, PinProvider: true, Configured: true},
		},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := want.Header()
			for name, values := range header {
				require.Len(t, values, 1)
				require.NotContains(t, values[0], "\n", "%s would break the header", name)
				require.NotContains(t, values[0], "\r")
			}
			got, err := contract.ParseRequest(header)
			require.NoError(t, err)
			require.True(t, want.StartBy.Equal(got.StartBy))
			got.StartBy = want.StartBy
			require.Equal(t, want, *got)
		})
	}
}

func TestParseRequestRefuses(t *testing.T) {
	t.Parallel()
	good := func() map[string][]string { return (&contract.Request{ID: "r", Ingress: "i"}).Header() }
	tests := map[string]func(h map[string][]string){
		"no id":             func(h map[string][]string) { delete(h, contract.HeaderRequestID) },
		"id without values": func(h map[string][]string) { h[contract.HeaderRequestID] = nil },
		"empty id":          func(h map[string][]string) { h[contract.HeaderRequestID] = []string{""} },
		"no deadline":       func(h map[string][]string) { delete(h, contract.HeaderDeadline) },
		"deadline is text":  func(h map[string][]string) { h[contract.HeaderDeadline] = []string{"soon"} },
		"no envelope":       func(h map[string][]string) { delete(h, contract.HeaderRequest) },
		"broken envelope":   func(h map[string][]string) { h[contract.HeaderRequest] = []string{"{"} },
		"wrong type":        func(h map[string][]string) { h[contract.HeaderRequest] = []string{`{"stream": "yes"}`} },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := good()
			damage(h)
			_, err := contract.ParseRequest(h)
			require.ErrorIs(t, err, contract.ErrNotARequest)
		})
	}
	_, err := contract.ParseRequest(good())
	require.NoError(t, err)
}

func FuzzParseRequest(f *testing.F) {
	h := (&contract.Request{ID: "r", Ingress: "i", Decision: &contract.Decision{Model: "m"}}).Header()
	f.Add(h[contract.HeaderRequestID][0], h[contract.HeaderDeadline][0], h[contract.HeaderRequest][0])
	f.Add("", "", "")
	f.Add("r", "-1", `{"received_at":"x"}`)
	f.Add("r", "99999999999999999999", `null`)
	f.Fuzz(func(t *testing.T, id, deadline, envelope string) {
		got, err := contract.ParseRequest(map[string][]string{
			contract.HeaderRequestID: {id}, contract.HeaderDeadline: {deadline}, contract.HeaderRequest: {envelope},
		})
		if err != nil {
			require.ErrorIs(t, err, contract.ErrNotARequest)
			return
		}
		require.Equal(t, id, got.ID)
		again, err := contract.ParseRequest(got.Header())
		require.NoError(t, err)
		require.Equal(t, got.Header(), again.Header())
	})
}
