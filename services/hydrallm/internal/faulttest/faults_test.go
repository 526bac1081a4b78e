package faulttest

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/testkit/fakellm"
)

// call is one upstream call that is to be answered, well or not.
type call struct {
	*question
	key string // that the gateway showed
	rnd *rand.Rand
}

// fault is one way to answer.
type fault struct {
	name   string
	weight int
	answer func(c call) fakellm.Answer
}

const (
	contentEvents = "text/event-stream"
	contentJSON   = "application/json"
	large         = 10 << 20
)

// filler is a long text without line breaks.
var filler = bytes.Repeat([]byte("0123456789abcdef"), large/16)

// faults are the answers that upstreams give. Where an answer is as good as whole, it holds the text of the question.
var faults = []fault{
	{"healthy", 90, call.healthy},
	{"slow start", 4, func(c call) fakellm.Answer {
		return c.healthy().After(time.Duration(c.rnd.IntN(900)) * time.Millisecond)
	}},
	{"never answers", 3, func(call) fakellm.Answer { return fakellm.NoAnswer() }},
	{"no connection", 3, func(call) fakellm.Answer { return fakellm.Abort() }},
	{"byte by byte", 4, func(c call) fakellm.Answer { return c.sent(c.kind(), strings.Split(string(c.whole()), "")...) }},      // SSE-06
	{"large line", 1, func(c call) fakellm.Answer { return c.sent(c.kind(), c.padded(), c.rest()) }},                           // SSE-07
	{"large line of nothing", 1, func(c call) fakellm.Answer { return c.sent(c.kind(), "data: ", string(filler)) }},            // SSE-07
	{"gzip unasked", 3, func(c call) fakellm.Answer { return labelled(c.sent(c.kind(), string(gzipped(c.whole()))), "gzip") }}, // HDR-01
	{"gzip without a label", 1, func(c call) fakellm.Answer { return c.sent(c.kind(), string(gzipped(c.whole()))) }},
	{"gzip in name only", 1, func(c call) fakellm.Answer { return labelled(c.healthy(), "gzip") }},
	{"gzip that breaks off", 1, func(c call) fakellm.Answer {
		return labelled(c.sent(c.kind(), string(half(gzipped(c.whole())))), "gzip")
	}},
	{"unknown encoding", 1, func(c call) fakellm.Answer { return labelled(c.healthy(), "br") }},
	{"reset in the body", 3, func(c call) fakellm.Answer { return c.broken(fakellm.Reset) }},
	{"cut in the body", 3, func(c call) fakellm.Answer { return c.broken(fakellm.Cut) }}, // STR-01
	{"silent in the body", 3, func(c call) fakellm.Answer { return c.broken(fakellm.Hang) }},
	{"cut in a chunk", 2, func(c call) fakellm.Answer { return c.chunked("\r\n2000\r\nda") }},
	{"no chunk size", 2, func(c call) fakellm.Answer { return c.chunked("\r\nnonsense\r\n") }},
	{"chunk size of another age", 2, func(c call) fakellm.Answer { return c.chunked("\r\nffffffffffffffffff\r\n") }},
	{"chunk without an end", 2, func(c call) fakellm.Answer { return c.chunked("data: x") }},
	{"no HTTP", 2, func(call) fakellm.Answer { return fakellm.Answer{Raw: []byte("SSH-2.0-OpenSSH_9.9\r\n")} }},
	{"no end of informational answers", 1, func(call) fakellm.Answer {
		return fakellm.Answer{Raw: bytes.Repeat([]byte("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"), 2000)}
	}},
	{"redirect", 2, func(c call) fakellm.Answer {
		return fakellm.Answer{Status: []int{301, 302, 303, 307, 308}[c.rnd.IntN(5)], Header: map[string]string{"Location": "/elsewhere"}}
	}},
	{"large header", 1, func(c call) fakellm.Answer {
		a := c.healthy()
		a.Header["X-Large"] = string(filler[:300<<10])
		return a
	}},
	{"length too long", 2, func(c call) fakellm.Answer {
		a := c.sent(c.kind(), string(c.whole()))
		a.Header["Content-Length"] = strconv.Itoa(len(c.whole()) + 100)
		a.End = fakellm.Cut
		return a
	}},
	{"error with 200", 3, func(c call) fakellm.Answer { return fakellm.JSON(http.StatusOK, c.odd(errorBodies)) }},  // C-42
	{"error as an event", 3, func(c call) fakellm.Answer { return fakellm.SSE(c.odd(errorBodies), fakellm.Done) }}, // STR-04
	{"error named as one", 2, func(c call) fakellm.Answer {
		return c.sent(contentEvents, c.event(c.delta(`{"role":"assistant"}`, "null")), "event: error\ndata: "+c.odd(errorBodies)+"\n\n")
	}},
	{"error after content", 4, func(c call) fakellm.Answer {
		events := c.events()
		return c.sent(contentEvents, strings.Join(events[:2+c.rnd.IntN(len(c.words))], ""), "data: "+c.odd(errorBodies)+"\n\n", c.event(fakellm.Done))
	}},
	{"HTML", 3, func(c call) fakellm.Answer { // FO-10
		return fakellm.Answer{Status: []int{200, 502, 413, 403}[c.rnd.IntN(4)], Header: kindHeader("text/html"), Body: []byte("<!DOCTYPE html>\n<html><body>Welcome</body></html>")}
	}},
	{"nothing", 3, func(c call) fakellm.Answer { // STR-12
		return c.sent([]string{contentEvents, contentJSON, ""}[c.rnd.IntN(3)], []string{"", "\n", fakellm.Done, ": ping\n\ndata: [DONE]\n\n", "{}", `{"choices":[]}`}[c.rnd.IntN(6)])
	}},
	{"no finish", 2, func(c call) fakellm.Answer { return c.sent(contentEvents, c.untilFinish(), "data: [DONE]\n\n") }},
	{"no [DONE]", 3, func(c call) fakellm.Answer { return c.sent(contentEvents, c.untilDone()) }}, // STR-01
	{"no [DONE] and no end", 3, func(c call) fakellm.Answer { // STR-01
		a := c.sent(contentEvents, c.untilDone())
		a.End = fakellm.Hang
		return a
	}},
	{"comments without end", 2, func(c call) fakellm.Answer {
		return c.sent(contentEvents, append([]string{c.untilFinish()}, slices.Repeat([]string{": ping\n\n"}, 100)...)...).Gap(20 * time.Millisecond)
	}},
	{"the other kind", 4, func(c call) fakellm.Answer { // STR-10
		if c.stream {
			return c.sent(contentJSON, string(c.completion("")))
		}
		return c.sent(contentEvents, strings.Join(c.events(), ""))
	}},
	{"wrong label", 3, func(c call) fakellm.Answer {
		return c.sent([]string{"", "text/plain", "application/octet-stream", ";;;"}[c.rnd.IntN(4)], string(c.whole()))
	}},
	{"out of breath", 8, func(c call) fakellm.Answer { return c.status(429, 500, 502, 503, 504, 520, 529, 408) }},
	{"wrong key", 2, func(c call) fakellm.Answer { return c.status(401, 403) }},
	{"refused", 2, func(c call) fakellm.Answer { return c.status(400, 402, 404, 413, 422) }},
	{"strange status", 2, func(c call) fakellm.Answer { return c.status(204, 206, 299, 304, 418, 451, 599) }},
}

// errorBodies say in many ways that something went wrong (FO-09). Some hold what must not reach a client.
var errorBodies = []string{
	`{"error":{"message":"engine died, key ` + keyMark + `","type":"server_error","param":null,"code":null}}`,
	`{"error":{"type":"overloaded_error","message":"busy","code":529}}`,
	`[{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}]`,
	`{"error":"plain ` + keyMark + `"}`,
	`{"error":{"message":"{\"error\":{\"code\":429}}","code":429}}`,
	`{"error":{"code":400,"message":"<b>m</b>"}}`,
	`{"error":{"message":null}}`,
	`{"error":{}}`,
}

// oddBodies are what comes with a status that is no success.
var oddBodies = append([]string{
	"", "null", `"text"`, "\x00\xff\xfe", "<html><body>" + keyMark + "</body></html>", `{"detail":[{"msg":"m"}]}`, `{"message":"wrong ` + keyMark + `"}`,
	`{"error":{"message":"` + strings.Repeat("long ", 100000) + `"}}`, strings.Repeat("[", 100000), `{"error":`,
}, errorBodies...)

// keyMark stands for the key of the call in a body.
const keyMark = "<KEY>"

func (c call) odd(bodies []string) string {
	return strings.ReplaceAll(bodies[c.rnd.IntN(len(bodies))], keyMark, c.key)
}

func (c call) status(codes ...int) fakellm.Answer {
	a := fakellm.Answer{Status: codes[c.rnd.IntN(len(codes))], Header: kindHeader([]string{contentJSON, "text/html", ""}[c.rnd.IntN(3)]), Body: []byte(c.odd(oddBodies))}
	if c.rnd.IntN(2) == 0 {
		a.Header["Retry-After"] = []string{"1", "-5", "soon", "Fri, 31 Dec 1999 23:59:59 GMT", "99999999999999999999"}[c.rnd.IntN(5)]
	}
	if a.Status == http.StatusNoContent || a.Status == http.StatusNotModified {
		a.Body = nil
	}
	return a
}

func kindHeader(contentType string) map[string]string {
	return map[string]string{"Content-Type": contentType}
}

// healthy is a right answer.
func (c call) healthy() fakellm.Answer {
	if !c.stream {
		return c.sent(contentJSON, string(c.completion("")))
	}
	return c.sent(contentEvents, c.events()...).Gap(time.Duration(c.rnd.IntN(4)) * time.Millisecond)
}

func (c call) kind() string {
	if c.stream {
		return contentEvents
	}
	return contentJSON
}

// sent is a 200 of pieces that are flushed one by one.
func (c call) sent(contentType string, pieces ...string) fakellm.Answer {
	a := fakellm.Answer{Header: kindHeader(contentType)}
	for _, p := range pieces {
		a.Chunks = append(a.Chunks, fakellm.Chunk{Data: p})
	}
	return a
}

// broken is a right answer up to some point.
func (c call) broken(end fakellm.End) fakellm.Answer {
	whole := c.whole()
	at := c.rnd.IntN(len(whole))
	a := c.sent(c.kind(), string(whole[:at/2]), string(whole[at/2:at]))
	a.End = end
	return a
}

// chunked is an answer whose transfer coding breaks after a part of the body.
func (c call) chunked(then string) fakellm.Answer {
	part := half(c.whole())
	raw := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", c.kind(), len(part))
	return fakellm.Answer{Raw: append(append(raw, part...), then...)}
}

func half(p []byte) []byte { return p[:len(p)/2] }

func labelled(a fakellm.Answer, encoding string) fakellm.Answer {
	a.Header["Content-Encoding"] = encoding
	return a
}

func gzipped(p []byte) []byte {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write(p) // to memory
	_ = w.Close()
	return buf.Bytes()
}

// whole is the body of a right answer.
func (c call) whole() []byte {
	if c.stream {
		return []byte(strings.Join(c.events(), ""))
	}
	return c.completion("")
}

// padded is the first part of an answer that is right, but long: the whole one when it is JSON.
func (c call) padded() string {
	padding := `"padding":"` + string(filler) + `",`
	if !c.stream {
		return string(c.completion(padding))
	}
	return c.event(`{` + padding + c.delta(`{"role":"assistant"}`, "null")[1:])
}

// rest is what follows after padded.
func (c call) rest() string {
	if !c.stream {
		return "\n"
	}
	return strings.Join(c.events()[1:], "")
}

func (c call) event(data string) string { return "data: " + data + "\n\n" }

// events are the events of a right stream: the role, a chunk per word, the finish, the usage and [DONE].
func (c call) events() []string {
	list := []string{c.event(c.delta(`{"role":"assistant","content":""}`, "null"))}
	for _, w := range c.words {
		list = append(list, c.event(c.delta(`{"content":`+quoted(w)+`}`, "null")))
	}
	return append(list, c.event(c.delta(`{}`, `"stop"`)), c.event(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[],"usage":`+usage+`}`),
		c.event(fakellm.Done))
}

func (c call) untilFinish() string { return strings.Join(c.events()[:len(c.words)+1], "") }
func (c call) untilDone() string   { return strings.Join(c.events()[:len(c.words)+3], "") }

const usage = `{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}`

func (c call) delta(delta, finish string) string {
	return `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"real","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}`
}

// completion is a right JSON answer with further members in front.
func (c call) completion(members string) []byte {
	return []byte(`{` + members + `"id":"c1","object":"chat.completion","created":1,"model":"real","choices":[{"index":0,"message":{"role":"assistant","content":` +
		quoted(c.text()) + `},"finish_reason":"stop"}],"usage":` + usage + `}`)
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// answerOf gives what upstream does with a question.
func answerOf(seed uint64, upstream, key string, q *question) (string, fakellm.Answer) {
	c := call{q, key, random(seed, "fault of "+upstream, q.n)}
	total := 0
	for _, f := range faults {
		total += f.weight
	}
	pick := c.rnd.IntN(total)
	for _, f := range faults {
		if pick -= f.weight; pick < 0 {
			return f.name, f.answer(c)
		}
	}
	panic("no fault has the weight")
}
