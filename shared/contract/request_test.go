package contract_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

var direct = contract.Slip{contract.StageEnriched}

//
func TestRequestSurvivesTheWay(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	tests := map[string]contract.Request{
		"received": {
			ID: "r1", Slip: contract.Slip{contract.StageSession, contract.StageReceived, contract.StageAnalyzed, contract.StageEnriched},
			QueueTimeout: 90 * time.Second, Principal: contract.PrincipalAnonymous, ForkFrom: "m\x00", CompressContext: new(false), NoHistory: true,
			Traits: contract.Traits{Tokens: math.MaxInt64, Images: true, Audio: true, Files: true, Tools: true, UserText: true, URL: true, Searches: true},
			Web:    contract.Web{Search: true, Tool: "web_search", Fetch: "https://x/?q=\"\n", Auto: new(true)}, StartBy: at.Add(30 * time.Second).Truncate(time.Millisecond).Local(), Ingress: "i1", Operation: contract.Chat, Surface: contract.SurfaceChat,
			ContentType: `multipart/form-data; boundary="b"`,
			Model:       "имя/модели \"q\"\r\n", Stream: true, IncludeUsage: true, Priority: contract.PriorityLow, SessionID: "s", ReceivedAt: at,
		},
		"decided": {
			ID: "r2", Slip: direct, StartBy: time.UnixMilli(0), ReceivedAt: at,
			Decision: &contract.Decision{Model: "m", Reason: contract.ReasonModelHint, PinProvider: true, Configured: true},
		},
		"with headers of the client": {
			ID: "r4", Slip: direct, StartBy: time.UnixMilli(0), ReceivedAt: at, Surface: contract.SurfaceMessages, Operation: contract.CountTokens,
			Headers: [][2]string{{"Anthropic-Version", "2023-06-01"}, {"Anthropic-Beta", `a,"b"`}},
		},
		"of a response": {
			ID: "r3", Slip: direct, StartBy: time.UnixMilli(0), ReceivedAt: at, Surface: contract.SurfaceResponses,
			Store: true, Background: true, Previous: "resp_1", References: true, Inherited: 7, WebParts: []byte(`[{"type":"web_fetch","data":{}}]`),
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
	good := func() map[string][]string { return (&contract.Request{ID: "r", Ingress: "i", Slip: direct}).Header() }
	tests := map[string]func(h map[string][]string){
		"no id":             func(h map[string][]string) { delete(h, contract.HeaderRequestID) },
		"id without values": func(h map[string][]string) { h[contract.HeaderRequestID] = nil },
		"empty id":          func(h map[string][]string) { h[contract.HeaderRequestID] = []string{""} },
		"no deadline":       func(h map[string][]string) { delete(h, contract.HeaderDeadline) },
		"deadline is text":  func(h map[string][]string) { h[contract.HeaderDeadline] = []string{"soon"} },
		"no envelope":       func(h map[string][]string) { delete(h, contract.HeaderRequest) },
		"broken envelope":   func(h map[string][]string) { h[contract.HeaderRequest] = []string{"{"} },
		"no slip":           func(h map[string][]string) { h[contract.HeaderRequest] = []string{`{}`} },
		"wrong type":        func(h map[string][]string) { h[contract.HeaderRequest] = []string{`{"stream": "yes"}`} },
	}
	for name, slip := range map[string]string{
		"empty slip": `[]`, "slip is text": `"enriched"`, "unknown stage": `["billed","enriched"]`, "stage is a number": `[1]`,
		"stages out of order": `["analyzed","received","enriched"]`, "a stage twice": `["received","received","enriched"]`,
		"the last stage is not the dispatcher": `["session","received"]`, "two slips, the last one wrong": `["enriched"],"slip":[]`,
	} {
		tests[name] = func(h map[string][]string) { h[contract.HeaderRequest] = []string{`{"slip":` + slip + `}`} }
	}
	for name, text := range map[string]string{
		"queue timeout in words": `{"slip":["enriched"],"queue_ms":"1s"}`, "negative queue timeout": `{"slip":["enriched"],"queue_ms":-1}`,
		"queue timeout without end": `{"slip":["enriched"],"queue_ms":9223372036854775807}`, "compress_context": `{"slip":["enriched"],"compress_context":null}`,
		"inherited items": `{"slip":["enriched"],"inherited":-1}`,
	} {
		tests[name] = func(h map[string][]string) { h[contract.HeaderRequest] = []string{text} }
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
	h := (&contract.Request{ID: "r", Ingress: "i", Slip: direct, Decision: &contract.Decision{Model: "m"}}).Header()
	f.Add(h[contract.HeaderRequestID][0], h[contract.HeaderDeadline][0], h[contract.HeaderRequest][0])
	f.Add("", "", "")
	f.Add("r", "-1", `{"slip":["received","enriched"],"queue_ms":30000,"auto_web_fetch":false,"tokens":7}`)
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
