package stream

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"hydrallm/shared/openai"
)

// Collector puts an event stream together to the JSON answer that a client asked for although the upstream streamed. It reads what the
// filter makes of the stream, so that both ways give the same answer.
type Collector struct {
	filter  *Filter
	answers []*answer
	done    bool
	size    int
}

// maxCollected bounds the text that is put together, in bytes.
const maxCollected = 64 << 20

// ErrTooLarge says that an answer is larger than the limit.
var ErrTooLarge = errors.New("answer is larger than the limit")

// answer is one choice being put together.
type answer struct {
	index              int64
	content, reasoning strings.Builder
	refusal            strings.Builder
	tools              []*answerTool
	finish             string
}

type answerTool struct {
	id, name string
	args     strings.Builder
}

// NewCollector begins an answer.
func NewCollector(opts Options) *Collector {
	opts.IncludeUsage = false
	return &Collector{filter: NewFilter(opts)}
}

// Add takes the next event. problem is the data of an event that is an error or may be one.
func (c *Collector) Add(e openai.Event) (problem []byte, err error) {
	if c.size += len(e.Data); c.size > maxCollected {
		return nil, ErrTooLarge
	}
	step := c.filter.Event(nil, e)
	c.done = c.done || step.Done
	c.read(step.Out)
	return step.Problem, nil
}

// Done says that nothing more is to be read.
func (c *Collector) Done() bool { return c.done }

// Usage is the last usage that came.
func (c *Collector) Usage() Usage { return c.filter.Usage() }

func (c *Collector) read(out []byte) {
	events := openai.NewReader(bytes.NewReader(out), 0)
	for {
		e, err := events.Next()
		if errors.Is(err, io.EOF) || err != nil {
			return
		}
		for _, choice := range gjson.GetBytes(e.Data, "choices").Array() {
			c.answer(choice.Get("index").Int()).add(choice)
		}
	}
}

func (c *Collector) answer(index int64) *answer {
	for _, a := range c.answers {
		if a.index == index {
			return a
		}
	}
	a := &answer{index: index}
	c.answers = append(c.answers, a)
	return a
}

func (a *answer) add(choice gjson.Result) {
	delta := choice.Get("delta")
	a.content.WriteString(delta.Get("content").String())
	a.refusal.WriteString(delta.Get("refusal").String())
	thought := delta.Get("reasoning_content").String()
	if thought == "" {
		thought = delta.Get("reasoning").String()
	}
	a.reasoning.WriteString(thought)
	for _, t := range delta.Get("tool_calls").Array() {
		for i := int(t.Get("index").Int()); i >= len(a.tools) && i < 1024; {
			a.tools = append(a.tools, &answerTool{})
		}
		i := int(t.Get("index").Int())
		if i < 0 || i >= len(a.tools) {
			continue
		}
		tool := a.tools[i]
		if id := t.Get("id").Str; id != "" {
			tool.id = id
		}
		if name := t.Get("function.name").Str; name != "" {
			tool.name = name
		}
		tool.args.WriteString(t.Get("function.arguments").String())
	}
	if finish := choice.Get("finish_reason").Str; finish != "" {
		a.finish = finish
	}
}

// Completion is the whole answer. The error says that the stream broke off or held none.
func (c *Collector) Completion() ([]byte, error) {
	end, err := c.filter.End(nil)
	if err != nil {
		return nil, err
	}
	c.read(end)
	slices.SortFunc(c.answers, func(a, b *answer) int { return int(a.index - b.index) })
	body := bytes.Replace(c.filter.envelope, []byte(`"chat.completion.chunk"`), []byte(`"chat.completion"`), 1)
	body = append(body, `,"choices":[`...)
	for i, a := range c.answers {
		if i > 0 {
			body = append(body, ',')
		}
		body = a.append(body)
	}
	body = append(body, ']')
	if c.filter.usageRaw != nil {
		body = append(append(body, `,"usage":`...), c.filter.usageRaw...)
	}
	return append(body, '}'), nil
}

func (a *answer) append(dst []byte) []byte {
	dst = append(dst, `{"index":`+itoa(a.index)+`,"message":{"role":"assistant","content":`...)
	if a.content.Len() == 0 && len(a.tools) > 0 {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, quote(a.content.String())...)
	}
	if a.reasoning.Len() > 0 {
		dst = append(dst, `,"reasoning_content":`+quote(a.reasoning.String())...)
	}
	if a.refusal.Len() > 0 {
		dst = append(dst, `,"refusal":`+quote(a.refusal.String())...)
	}
	for i, t := range a.tools {
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"id":`+quote(t.id)+`,"type":"function","function":{"name":`+quote(t.name)+`,"arguments":`+quote(t.args.String())+`}}`...)
	}
	if len(a.tools) > 0 {
		dst = append(dst, ']')
	}
	finish := a.finish
	if finish == "" {
		finish = "stop"
	}
	return append(dst, `},"finish_reason":`+quote(finish)+`}`...)
}
