package responses_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/shared/contract"
	"hydrallm/shared/surface/responses"
)

const queued = `{"id":"resp_r","status":"queued","error":null,"output":[],"usage":null}`

// frame is an encoded frame of a recording.
func frame(kind contract.FrameKind, payload string) []byte {
	return contract.AppendFrame(nil, contract.Frame{Kind: kind, Position: contract.Position{Stage: contract.StageEnriched, Delivery: 1}, Payload: []byte(payload)})
}

// event is one of a stream of Responses; more are its members.
func event(n int, kind, more string) string {
	return fmt.Sprintf("event: %s\ndata: {\"type\":%q,\"sequence_number\":%d%s}\n\n", kind, kind, n, more)
}

// begun is a stream that breaks off: a thought, a message and a call that are done, and one of each that is not.
var begun = event(0, "response.created", `,"response":{"id":"resp_r","status":"in_progress","error":null,"output":[],"usage":null}`) +
	event(1, "response.in_progress", `,"response":{"id":"resp_r","status":"in_progress","error":null,"model":"real","output":[],"usage":null}`) +
	event(2, "response.output_item.added", `,"output_index":0,"item":{"id":"a","type":"reasoning","summary":[]}`) +
	event(3, "response.output_item.done", `,"output_index":0,"item":{"id":"a","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]}`) +
	": a comment\n\n" +
	event(4, "response.output_item.added", `,"output_index":1,"item":{"id":"b","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
	event(5, "response.content_part.added", `,"output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`) +
	event(6, "response.output_text.delta", `,"output_index":1,"content_index":0,"delta":"Hi \"y"`) +
	event(7, "response.output_text.delta", `,"output_index":1,"content_index":0,"delta":"ou\n"`) +
	event(8, "response.output_item.added", `,"output_index":2,"item":{"id":"c","type":"function_call","status":"in_progress","call_id":"1","name":"f","arguments":""}`) +
	event(9, "response.function_call_arguments.delta", `,"output_index":2,"delta":"{\"a\""`)

const answered = `[{"id":"a","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}]},` +
	`{"id":"b","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Hi \"you\n","annotations":[]}]},` +
	`{"id":"c","type":"function_call","status":"incomplete","call_id":"1","name":"f","arguments":"{\"a\""}]`

// played is what a player makes of pieces of a recording.
type played struct {
	events   string
	numbers  []int
	response gjson.Result
}

func play(tb testing.TB, pieces ...[]byte) played {
	tb.Helper()
	var got played
	p := responses.NewPlayer([]byte(queued), func(number int, event []byte) {
		got.numbers = append(got.numbers, number)
		got.events += string(event)
	})
	for _, piece := range pieces {
		require.NoError(tb, p.Take(piece))
	}
	require.Equal(tb, len(got.numbers), p.Next())
	got.response = gjson.ParseBytes(p.Response())
	return got
}

var ok = frame(contract.FrameHead, `{"status":200}`)

// the end of a response is that of its answer. Where that has none, everybody gets the same one, with what came.
func TestPlayer(t *testing.T) {
	t.Parallel()
	completed := event(10, "response.completed", `,"response":{"id":"resp_r","status":"completed","error":null,"output":[{"id":"x"}],"usage":{}}`)
	tests := map[string]struct {
		pieces                [][]byte
		status, last          string // of the response, and kind of the last event
		output, code, message string
	}{
		"whole":      {[][]byte{ok, frame(contract.FrameData, begun+completed), frame(contract.FrameEnd, `{"outcome":"success"}`)}, "completed", "response.completed", `[{"id":"x"}]`, "", ""},
		"under way":  {[][]byte{ok, frame(contract.FrameData, begun)}, "in_progress", "response.function_call_arguments.delta", `[]`, "", ""},
		"cancelled":  {[][]byte{ok, frame(contract.FrameData, begun), frame(contract.FrameEnd, `{"outcome":"cancelled","reason":"cancelled"}`)}, "cancelled", "response.cancelled", answered, "", ""},
		"not begun":  {[][]byte{frame(contract.FrameEnd, `{"outcome":"cancelled","reason":"cancelled"}`)}, "cancelled", "response.cancelled", `[]`, "", ""},
		"lost":       {[][]byte{ok, frame(contract.FrameData, begun), frame(contract.FrameEnd, `{"outcome":"error","reason":"worker_lost"}`)}, "failed", "response.failed", answered, "server_error", "died"},
		"too old":    {[][]byte{frame(contract.FrameEnd, `{"outcome":"error","reason":"lifetime"}`)}, "failed", "response.failed", `[]`, "server_error", "longer"},
		"unfinished": {[][]byte{ok, frame(contract.FrameData, begun+"event: x\ndata: {"), frame(contract.FrameEnd, `{"outcome":"error","reason":"unfinished"}`)}, "failed", "response.failed", answered, "server_error", "finished"},
		"refused": {
			[][]byte{frame(contract.FrameHead, `{"status":429}`), frame(contract.FrameData, `{"error":{"mess`), frame(contract.FrameData, `age":"slow down"}}`), frame(contract.FrameEnd, `{"outcome":"error"}`)},
			"failed", "response.failed", `[]`, "rate_limit_exceeded", "slow down",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := play(t, tt.pieces...)
			require.Equal(t, tt.status, got.response.Get("status").Str)
			require.JSONEq(t, tt.output, got.response.Get("output").Raw)
			require.Equal(t, tt.code, got.response.Get("error.code").Str)
			require.Contains(t, got.response.Get("error.message").Str, tt.message)
			for i, n := range got.numbers {
				require.Equal(t, i, n)
			}
			require.Contains(t, got.events, `"sequence_number":0,"response":`+queued, "the first event is there at once")
			lines := strings.Split(strings.TrimSpace(got.events), "\n\n")
			kind, data, _ := strings.Cut(lines[len(lines)-1], "\ndata: ")
			require.Equal(t, "event: "+tt.last, kind)
			if strings.HasPrefix(tt.last, "response."+tt.status) {
				require.JSONEq(t, got.response.Raw, gjson.Get(data, "response").Raw)
			}
			require.NotContains(t, got.events, "comment")
		})
	}
	require.Error(t, responses.NewPlayer([]byte(queued), nil).Take([]byte("x")))
	require.JSONEq(t, strings.Replace(queued, "queued", "in_progress", 1), string(responses.InProgress([]byte(queued))))
}

// What comes in one piece or in many gives the same events.
func FuzzPlayer(f *testing.F) {
	f.Add([]byte(begun), 7)
	f.Add([]byte("data: {\"sequence_number\":3,\"output_index\":99999999}\r\n\r\n: \r\rdata: [1]\n\ndata: {}\ndata: \n\n"), 1)
	f.Fuzz(func(t *testing.T, data []byte, size int) {
		size = max(1, size%64)
		end := frame(contract.FrameEnd, `{"outcome":"error","reason":"worker_lost"}`)
		pieces := [][]byte{ok}
		for i := 0; i < len(data); i += size {
			pieces = append(pieces, frame(contract.FrameData, string(data[i:min(i+size, len(data))])))
		}
		whole, cut := &bytes.Buffer{}, &bytes.Buffer{}
		a := responses.NewPlayer([]byte(queued), func(_ int, e []byte) { whole.Write(e) })
		b := responses.NewPlayer([]byte(queued), func(_ int, e []byte) { cut.Write(e) })
		require.NoError(t, a.Take(bytes.Join([][]byte{ok, frame(contract.FrameData, string(data)), end}, nil)))
		for _, p := range append(pieces, end) {
			require.NoError(t, b.Take(p))
		}
		require.Equal(t, whole.String(), cut.String())
		require.Equal(t, string(a.Response()), string(b.Response()))
		require.True(t, gjson.ValidBytes(a.Response()))
	})
}

// a queued response says what was asked for, unless that is too much for one message.
func TestQueued(t *testing.T) {
	t.Parallel()
	envelope := &contract.Request{ID: "r", Store: true, ReceivedAt: time.Unix(7, 0)}
	got, err := responses.Queued(envelope, []byte(`{"model":"m","input":"hi","background":true,"instructions":"be brief","previous_response_id":"resp_p"}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"id":"resp_r","status":"queued","created_at":7,"background":true,"model":"m","instructions":"be brief","previous_response_id":"resp_p","store":true}`,
		gjson.GetBytes(got, "{id,status,created_at,background,model,instructions,previous_response_id,store}").Raw)
	got, err = responses.Queued(envelope, []byte(`{"model":"m","input":"hi","instructions":"`+strings.Repeat("x", 9<<20)+`"}`))
	require.NoError(t, err)
	require.Less(t, len(got), 4096)
	require.Equal(t, "null", gjson.GetBytes(got, "instructions").Raw)
	_, err = responses.Queued(envelope, []byte(`{"input":5}`))
	require.Error(t, err)
}
