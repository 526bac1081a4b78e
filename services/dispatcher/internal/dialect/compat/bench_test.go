package compat_test

import (
	"strings"
	"testing"

	"hydrallm/services/dispatcher/internal/dialect/compat"
)

// BenchmarkRequest is the adaptation of a turn of a coding agent: 64 KiB of history with tool calls and 20 tools.
func BenchmarkRequest(b *testing.B) {
	said := strings.Repeat(`The lamp is \"green\".\n`, 40)
	turn := `{"role":"user","content":"` + said + `"},{"role":"assistant","content":"","tool_calls":[` +
		`{"id":"fxA1b2C3d","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]},` +
		`{"role":"tool","tool_call_id":"fxA1b2C3d","name":"read","content":"` + said + `"},{"role":"assistant","content":"ok"},`
	history := strings.Repeat(turn, 28)
	tools := strings.TrimSuffix(strings.Repeat(`{"type":"function","function":{"name":"read","description":"Reads.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},`, 20), ",")
	plain := request(history+hi, `,"temperature":0,"stream":true,"tools":[`+tools+`]`)
	dirty := request(history+hi, `,"store":false,"temperature":0,"stream":true,"tools":[`+tools+`]`)
	for _, c := range []struct{ name, vendor, body string }{
		{"unknown", "", plain},
		{"nothing to do", "cerebras", plain},
		{"nothing to do, lax", "vllm", plain},
		{"one member", "cerebras", dirty},
		{"small", "gemini", request(hi, `,"temperature":0,"stream":true`)},
	} {
		b.Run(c.name, func(b *testing.B) {
			body := []byte(c.body)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compat.Request(c.vendor, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkInject is the same history on its way to Gemini, with every call signed by the client.
func BenchmarkInject(b *testing.B) {
	s := compat.NewSignatures()
	body := []byte(gemini("gemini-3-flash", strings.TrimSuffix(strings.Repeat(hi+","+step(call("a", signedBy("c2ln")))+",", 300), ",")))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		s.Inject(body)
	}
}
