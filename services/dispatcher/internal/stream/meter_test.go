package stream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
)

// the usage of an answer that passes by.
func TestMeter(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat(`b64\"\\`, 50_000) + `"`
	for name, c := range map[string]struct {
		text   string
		events bool
		want   openai.Usage
	}{
		"first":             {`{"usage":{"prompt_tokens":3,"total_tokens":4},"data":[]}`, false, openai.Usage{Prompt: 3, Total: 4}},
		"last, other names": {`{"data":[{"b64":` + long + `,"usage":{"total_tokens":1}}], "usage" : {"input_tokens":5,"output_tokens":6} }`, false, openai.Usage{Prompt: 5, Completion: 6, Total: 11}},
		"seconds":           {`{"text":"\"usage\":{\"total_tokens\":1}","usage":{"type":"duration","seconds":9}}`, false, openai.Usage{}},
		"within":            {`{"meta":{"usage":{"total_tokens":1}},"x":"usage"}`, false, openai.Usage{}},
		"in a list":         {`["usage",{"usage":{"total_tokens":1}}]`, false, openai.Usage{}},
		"null":              {`{"usage":null}`, false, openai.Usage{}},
		"cut":               {`{"usage":{"total_tokens":1`, false, openai.Usage{}},
		"two":               {`{"usage":{"total_tokens":1},"usage":{"total_tokens":2}}`, false, openai.Usage{Total: 2}},
		"endless":           {`{"usage":{"total_tokens":1,"x":` + long + `}}`, false, openai.Usage{}},
		"no JSON":           {"WEBVTT\n\n\"usage\":{", false, openai.Usage{}},
		"events": {
			"event: x\r\ndata: {\"b64\":" + long + "}\r\n\r\n: ping\n\ndata:{\"usage\":{\"total_tokens\":7}}\n\ndata: [DONE]\n\n", true, openai.Usage{Total: 7},
		},
		"the last event has none": {"data: {\"usage\":{\"total_tokens\":7}}\n\ndata: {\"x\":1}\n\n", true, openai.Usage{Total: 7}},
		"no line of data":         {"datum: {\"usage\":{\"total_tokens\":7}}\n\nda\nta: {\"usage\":{\"total_tokens\":7}}\n", true, openai.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, size := range []int{1, 7, len(c.text)} {
				m := stream.NewMeter(c.events)
				for rest := c.text; rest != ""; {
					n := min(size, len(rest))
					m.Write([]byte(rest[:n]))
					rest = rest[n:]
				}
				require.Equal(t, c.want, m.Usage(), "pieces of %d", size)
			}
		})
	}
}

// What a whole reader finds, the meter finds, wherever the text is cut.
func FuzzMeter(f *testing.F) {
	f.Add(`{"data":["a\\\"",{"usage":1}],"usage":{"total_tokens":3}}`, 3)
	f.Add(`{"usage" : null , "us\u0061ge":{"total_tokens":3}}`, 1)
	f.Fuzz(func(t *testing.T, text string, size int) {
		size = max(size, 1)
		plain, events := stream.NewMeter(false), stream.NewMeter(true)
		events.Write([]byte("data: "))
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			plain.Write([]byte(rest[:n]))
			events.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		events.Write([]byte("\n"))
		found := plain.Usage()
		if !strings.ContainsAny(text, "\r\n") {
			require.Equal(t, found, events.Usage())
		}
		var object map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &object) != nil || strings.Contains(text, `\u`) || len(object[`usage`]) > 1000 {
			return
		}
		require.Equal(t, openai.ParseUsage(object["usage"]), found)
	})
}
