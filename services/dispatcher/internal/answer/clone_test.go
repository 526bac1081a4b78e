package answer_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/dispatcher/internal/answer"
	"hydrallm/services/dispatcher/internal/answer/answertest"
	"hydrallm/shared/openai"
)

// A clone says what its chunk said, however that was made, and whatever becomes of it.
func TestClone(t *testing.T) {
	t.Parallel()
	const data = `{"id":"c1","error":null,"choices":[{"index":0,"delta":{"role":"assistant","content":"a","x":1,"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]},` +
		`"logprobs":{},"finish_reason":"stop"},{"delta":{"reasoning":"r","refusal":"n","function_call":{"name":"g"}}}],"usage":{"total_tokens":1},"y":2}`
	for name, chunkOf := range map[string]func(text []byte) *answer.Chunk{
		"as it came": func(text []byte) *answer.Chunk {
			c := &answer.Chunk{}
			c.Read(&openai.Event{Raw: text, Data: text[len("data: ") : len(text)-2], Lines: 1})
			return c
		},
		"not fit to pass": func(text []byte) *answer.Chunk {
			c := &answer.Chunk{}
			c.Read(&openai.Event{Raw: text, Data: text[len("data: ") : len(text)-2], Lines: 2})
			return c
		},
		"edited": func(text []byte) *answer.Chunk {
			c := &answer.Chunk{}
			c.Parse(text[len("data: "):])
			c.Choices = c.Choices[:1]
			c.Edited, c.Choices[0].Edited, c.Choices[0].Content = true, true, text[12:16]
			return c
		},
		"made": func(text []byte) *answer.Chunk {
			c := &answer.Chunk{}
			c.Reset(answer.Piece)
			c.ID, c.Created, c.Model = text[12:16], []byte("1"), []byte(`"m"`)
			ch := c.Choose(1)
			ch.Content, ch.Finish = text[12:16], []byte(`"stop"`)
			ch.Calls = []answer.Call{{Index: 0, Name: text[12:16], Others: []byte(`,"x":1`)}}
			return c
		},
		"a comment": func(text []byte) *answer.Chunk { return &answer.Chunk{Kind: answer.Comment, Raw: text} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte("data: " + data + "\n\n")
			c := chunkOf(text)
			want, kind := answertest.Write([]*answer.Chunk{c}), c.Kind
			clone := c.Clone()
			copy(text, bytes.Repeat([]byte("x"), len(text)))
			for i := range c.Choices {
				c.Choices[i] = answer.Choice{}
			}
			require.Equal(t, want, answertest.Write([]*answer.Chunk{clone}))
			require.Equal(t, kind, clone.Kind)
		})
	}
}
