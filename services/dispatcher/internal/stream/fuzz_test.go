package stream_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/stream"
)

// defects are deltas as upstreams send them, sound and broken.
var defects = []string{
	`{"role":"assistant","content":""}`, `{}`, `null`, `{"content":null}`, `{"content":7.0}`, `{"content":"a"}`, `{"content":"<thi"}`, `{"content":"nk>b</th"}`, `{"content":"ink>c<"}`,
	`{"content":"\u003cthink>"}`, `{"reasoning":"r","reasoning_content":"r"}`, `{"reasoning":"s"}`, `{"reasoning_content":""}`, `{"refusal":"no"}`, `{"x":[1]}`,
	`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
	`{"tool_calls":[{"index":0,"function":{"arguments":"{\"q\""}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}`,
	`{"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]}`,
	`{"tool_calls":[{"id":"c","function":{"name":"h","arguments":"{}"}},{"function":{"name":"h","arguments":"{}"}}]}`,
	`{"tool_calls":[{"index":1,"id":"","type":"","function":{"name":null,"arguments":"{}"}}]}`, `{"tool_calls":[{"index":2,"id":"d"}]}`,
	`{"tool_calls":[{"index":2,"function":{"name":"i"}}]}`, `{"tool_calls":[{"function":{"arguments":{"o":1}}}]}`, `{"tool_calls":[{"index":7,"id":"e","type":"function","function":{"name":"k"}}]}`,
	`{"tool_calls":[{"index":0,"id":"n","type":"function","function":{"name":"na","arguments":""}}]}`, `{"tool_calls":[{"index":0,"function":{"name":"me"}}]}`,
	`{"tool_calls":[]}`, `{"tool_calls":[{}]}`, `{"function_call":{"name":"f","arguments":""}}`, `{"content":"A","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":" "}}]}`,
}

var endings = []string{`null`, `""`, `"stop"`, `"tool_calls"`, `"length"`, `"end_turn"`, `"content_filter"`}

// script turns numbers into a stream.
func script(plan []byte) string {
	var b strings.Builder
	for i := 0; i+2 < len(plan); i += 3 {
		kind, index := plan[i]%16, int(plan[i+1]>>7)
		d := defects[int(plan[i+1]&127)%len(defects)]
		end := endings[0]
		if plan[i+2]%8 == 0 {
			end = endings[int(plan[i+2]/8)%len(endings)]
		}
		switch kind {
		case 0:
			b.WriteString(": ping\n\n")
		case 1:
			b.WriteString(usageChunk)
		case 2:
			fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":%d,\"delta\":%s,\"finish_reason\":%s}],\ndata: \"error\":null}\n\n", index, d, end)
		case 3:
			fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s},{\"index\":1,\"delta\":%s,\"finish_reason\":%s}],\"usage\":{\"total_tokens\":1}}\r\n\r\n", d, d, end)
		default:
			fmt.Fprintf(&b, "data: {\"id\":\"c\",\"choices\":[{\"index\":%d,\"delta\":%s,\"finish_reason\":%s}]}\n\n", index, d, end)
		}
	}
	return b.String()
}

// Whatever mix of sound and broken chunks comes, a strict client can read what the filter makes of it; the reads and the way to the answer
// (streamed, collected) make no difference.
func FuzzRepair(f *testing.F) {
	f.Add([]byte{4, 0, 1, 4, 14, 1, 4, 15, 1, 4, 16, 1, 4, 1, 16})
	f.Add([]byte{4, 18, 1, 4, 17, 1, 3, 5, 1, 4, 6, 1, 1, 0, 0, 4, 1, 16, 4, 129, 24})
	f.Add([]byte{5, 20, 1, 5, 21, 1, 5, 22, 1, 2, 1, 16})
	for i := range defects {
		f.Add([]byte{4, 4, 1, 4, byte(i), 1, 4, byte(i), 1, 4, byte(i), 16})
	}
	f.Fuzz(func(t *testing.T, plan []byte) {
		text := script(plan[:min(len(plan), 150)]) + doneEvent
		for _, opts := range []options{{}, {Think: stream.ThinkSplit, IncludeUsage: true, Model: "auto"}, {Think: stream.ThinkStrip}} {
			out, problem, err := pass(text, opts)
			require.Nil(t, problem)
			got := readStrictly(t, out)
			if err != nil {
				require.False(t, got.done)
				continue
			}
			require.True(t, got.done)
			require.LessOrEqual(t, len(got.usage), 1)
			for i, tools := range got.tools {
				require.NotEqual(t, "stop", got.finish[i])
				for _, call := range tools {
					require.NotEmpty(t, strings.TrimSpace(call.args))
				}
			}
			body, _, err := answertest.Collect(answertest.Chat(iotest.OneByteReader(strings.NewReader(text))), opts)
			require.NoError(t, err)
			for _, choice := range gjson.GetBytes(body, "choices").Array() {
				i := int(choice.Get("index").Int())
				require.Equal(t, got.content[i], choice.Get("message.content").String())
				require.Equal(t, got.reasoning[i], choice.Get("message.reasoning_content").String())
				require.Equal(t, got.finish[i], choice.Get("finish_reason").String())
				require.Len(t, choice.Get("message.tool_calls").Array(), len(got.tools[i]))
			}
		}
	})
}

// no finish reason that comes too early costs a piece of the text, wherever it stands and whatever lies between.
func FuzzPrematureFinish(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15})
	f.Add([]byte{8, 8, 2, 10, 10, 4, 12, 3, 11})
	f.Fuzz(func(t *testing.T, plan []byte) {
		pieces := []string{`{"role":"assistant","content":""}`, `{}`, `{"content":"a"}`, `{"reasoning_content":"r"}`, `{"content":"<"}`, `{"content":""}`, `{"content":7}`}
		var text, want, thoughts strings.Builder
		for i, p := range plan[:min(len(plan), 100)] {
			if p%8 == 7 {
				text.WriteString(": x\n\n")
				continue
			}
			piece, reason := pieces[p%8], "null"
			if p&8 != 0 {
				reason = endings[2+int(p>>4)%(len(endings)-2)]
			}
			fmt.Fprintf(&text, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}],\"n\":%d}\n\n", piece, reason, i)
			want.WriteString(gjson.Get(piece, "content").String())
			thoughts.WriteString(gjson.Get(piece, "reasoning_content").String())
		}
		text.WriteString(finish("stop") + usageChunk + doneEvent)
		for _, opts := range []options{{}, {Think: stream.ThinkSplit, IncludeUsage: true}} {
			out, problem, err := pass(text.String(), opts)
			require.NoError(t, err)
			require.Nil(t, problem)
			got := readStrictly(t, out)
			require.True(t, got.done)
			require.Equal(t, want.String(), got.content[0])
			require.Equal(t, thoughts.String(), got.reasoning[0])
			require.NotEmpty(t, got.finish[0])
		}
		require.Equal(t, want.String(), gjson.GetBytes(collect(t, text.String()), "choices.0.message.content").Str)
	})
}
