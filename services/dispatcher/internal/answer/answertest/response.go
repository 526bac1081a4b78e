package answertest

import (
	"io"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/shared/openai"
)

// Body reads the answer to a chat call, in Chat Completions; what is no answer comes as it is.
func Body(resp *dialect.Response) (string, error) {
	if resp.Status/100 != 2 {
		return text(resp.Body)
	}
	kind, err := resp.Sniff()
	switch {
	case err != nil:
		return "", err
	case kind == dialect.Events:
		return Text(resp.Source(openai.NewReader(resp.Body, 0), &answer.Reader{}))
	case kind == dialect.Other:
		return text(resp.Body)
	}
	body, err := text(resp.Body)
	if err != nil {
		return "", err
	}
	var c answer.Chunk
	if resp.Whole(&c, []byte(body)) {
		return string(Options{}.Answer().Whole(&c)), nil
	}
	return body, nil
}

func text(r io.Reader) (string, error) {
	body, err := io.ReadAll(r)
	return string(body), err
}
