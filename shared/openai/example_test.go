package openai_test

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"hydrallm/shared/openai"
	"hydrallm/shared/openai/rawjson"
)

// A request is read in one pass and rewritten for an upstream in its own text: what is not changed keeps its bytes.
func ExampleRequest_AppendUpstream() {
	body := []byte(`{"model": "my-gpt", "session_id": "s1", "seed": 9223372036854775807, "messages": [{"role": "user", "content": "Hi"}]}`)
	req, err := openai.ScanRequest(body)
	if err != nil {
		fmt.Println(err)
		return
	}
	patch, err := openai.CompilePatch([]byte(`{"provider":{"allow_fallbacks":false}}`), []byte(`{"provider":{"ignore":["x"]}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(req.Model, req.Stream, req.SessionID)
	fmt.Println(string(req.AppendUpstream(nil, openai.Rewrite{Model: "gpt-4o", Patch: patch})))
	// Output:
	// my-gpt false s1
	// {"model": "gpt-4o", "seed": 9223372036854775807, "messages": [{"role": "user", "content": "Hi"}],"provider":{"allow_fallbacks":false,"ignore":["x"]}}
}

// What is wrong with a request is told in OpenAI's terms.
func ExampleRequestError() {
	_, err := openai.ScanRequest([]byte(`{"model": "a", "model": "b", "messages": [{"role": "user", "content": "Hi"}]}`))
	if wrong, ok := errors.AsType[*openai.RequestError](err); ok {
		fmt.Println(wrong.Param, wrong.Code)
	}
	// Output: model duplicate_parameter
}

// A stream is read event by event, and what is of interest is read without decoding the rest.
func ExampleReader() {
	stream := ": hello\n\n" +
		`data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":1}}` + "\n\n" + openai.Done
	r := openai.NewReader(strings.NewReader(stream), 0)
	for {
		event, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			fmt.Println(err)
			return
		case event.Data == nil:
			fmt.Println("comment")
			continue
		case openai.IsDone(event.Data):
			fmt.Println("done")
			continue
		}
		fmt.Println("tokens:", openai.ParseUsage(rawjson.Get(event.Data, "usage")).Total)
	}
	// Output:
	// comment
	// tokens: 0
	// tokens: 0
	// tokens: 6
	// done
}
