package stream_test

import (
	"strings"
	"testing"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/shared/openai"
)

// openAI is a content delta as OpenAI sends it.
const openAI = `data: {"id":"chatcmpl-01","object":"chat.completion.chunk","created":1790000000,"model":"alpha-1","service_tier":"default","system_fingerprint":"fp_x",` +
	`"choices":[{"index":0,"delta":{"content":" green"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ3kPq"}` + "\n\n"

// BenchmarkStream is the whole way of a stream of 50 chunks: reading the events, inspecting and repairing them.
func BenchmarkStream(b *testing.B) {
	args := strings.Repeat(calls(`{"index":0,"function":{"arguments":"abc "}}`), 48)
	for _, c := range []struct {
		name, text string
		opts       options
	}{
		{"sound", strings.Repeat(openAI, 50), options{}},
		{"tools", calls(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"a\":\""}}`) + args + calls(`{"index":0,"function":{"arguments":"\"}"}}`), options{}},
		{"split, no tags", strings.Repeat(openAI, 50), options{Think: stream.ThinkSplit}},
		{"split, in a block", content("<think>") + strings.Repeat(openAI, 49), options{Think: stream.ThinkSplit}},
		{"role on every chunk", strings.Repeat(delta(`{"role":"assistant","content":"x"}`), 50), options{}},
		{"renamed", strings.Repeat(openAI, 50), options{Model: "auto"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := c.text + finish("stop") + doneEvent
			src := strings.NewReader("")
			events := openai.NewReader(src, 0)
			var chunks answer.Reader
			var out []byte
			b.ReportAllocs()
			for b.Loop() {
				src.Reset(text)
				events.Reset(src, 0)
				chunks.Reset(events)
				f, to := stream.NewFilter(c.opts.Filter()), c.opts.Answer()
				for {
					e, err := chunks.Next()
					if err != nil {
						break
					}
					out = out[:0]
					for _, c := range f.Take(e).Chunks {
						out = to.Append(out, c)
					}
				}
				end, err := f.End()
				if err != nil {
					b.Fatal(err)
				}
				out = out[:0]
				for _, c := range end.Chunks {
					out = to.Append(out, c)
				}
				out = to.End(out, end)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/52, "ns/chunk")
		})
	}
}

// BenchmarkCompletion is a whole answer of 64 KiB.
func BenchmarkCompletion(b *testing.B) {
	text := strings.Repeat("The lamp is green.\n", 64<<10/19)
	for _, c := range []struct {
		name string
		body []byte
		opts options
	}{
		{"sound", completion(text), options{}},
		{"split", completion("<think>" + text[:1000] + "</think>" + text), options{Think: stream.ThinkSplit}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				answertest.Completion(c.body, c.opts)
			}
		})
	}
}
