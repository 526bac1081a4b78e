package mockllm

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/contract"
)

// turn is what the mock does in answer to one request.
type turn struct {
	failure   *failure      // instead of an answer
	wait      time.Duration // before anything is sent
	reasoning string
	tags      bool // the reasoning is in think tags at the begin of the text
	text      *string
	refusal   string
	calls     []call
	finish    string // instead of the reason that follows from the rest
	usage     *usage // instead of a count of words
	midway    ending // what happens in the middle of the answer
}

// call is a tool that the mock wants to have called.
type call struct {
	id, name, arguments string
}

// ending is how an answer ends before its end.
type ending uint8

const (
	whole   ending = iota // it does not
	cut                   // the connection breaks
	faulted               // an error takes the place of the rest
)

// longest is the largest number of words that a message can ask for.
const longest = 100_000

// phrase is how a line of the message begins that tells the mock what to do. apply gets the rest of the line and changes the turn; when it
// answers false, the line is ordinary text.
type phrase struct {
	begin string
	apply func(t *turn, req *request, rest string) bool
}

// phrases are tried in this order. A new one needs a row in docs/mock.md.
var phrases = []phrase{
	{"say", say},
	{"write", write},
	{"think in tags", thinkInTags},
	{"think", think},
	{"call", callTool},
	{"refuse", refuse},
	{"finish", finishWith},
	{"usage", report},
	{"wait", waitFor},
	{"fail", failWith},
	{"break off", breakOff},
	{"recall", recall},
	{"quote", quote},
}

// script reads the turns that a text asks for; nil when it asks for nothing in particular. A line that begins with "then" begins another turn,
// which follows when the results of the tools are there.
func script(text string, req *request) []turn {
	turns := []turn{{}}
	found := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if rest, ok := after(line, "then"); ok {
			if rest == "" || understood(&turn{}, req, rest) {
				turns, line = append(turns, turn{}), rest
			}
		}
		found = understood(&turns[len(turns)-1], req, line) || found
	}
	if !found {
		return nil
	}
	return turns
}

// understood applies the phrase that a line begins with. It is false for ordinary text.
func understood(t *turn, req *request, line string) bool {
	for _, p := range phrases {
		if rest, ok := after(line, p.begin); ok && p.apply(t, req, rest) {
			return true
		}
	}
	return false
}

// after gives what follows a word or some at the begin of a line, in any case.
func after(line, begin string) (rest string, ok bool) {
	if len(line) < len(begin) || !strings.EqualFold(line[:len(begin)], begin) {
		return "", false
	}
	rest = strings.TrimPrefix(line[len(begin):], ".")
	trimmed := strings.TrimLeft(rest, " :,")
	return trimmed, rest == "" || trimmed != rest
}

func say(t *turn, _ *request, rest string) bool {
	if t.text != nil {
		rest = *t.text + "\n" + rest
	}
	t.text = &rest
	return true
}

var (
	wordCount  = regexp.MustCompile(`^(\d{1,6}) words?\b`)
	twoNumbers = regexp.MustCompile(`^(\d{1,7})\D+(\d{1,7})\b`)
	statusWait = regexp.MustCompile(`^(?:with )?([45]\d\d)(?: after (\S+))?\.?$`)
)

// write answers with a number of words.
func write(t *turn, _ *request, rest string) bool {
	m := wordCount.FindStringSubmatch(rest)
	if m == nil {
		return false
	}
	n, _ := strconv.Atoi(m[1])
	var b strings.Builder
	for i := range min(n, longest) {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString("word" + strconv.Itoa(i+1))
	}
	return say(t, nil, b.String())
}

func think(t *turn, _ *request, rest string) bool {
	t.reasoning = strings.TrimSpace("The user wants me to think. " + rest)
	return true
}

func thinkInTags(t *turn, req *request, rest string) bool {
	t.tags = true
	return think(t, req, rest)
}

var toolNamed = regexp.MustCompile(`^(?:the tool )?([\w.-]+)(?: with)?(?:\s+(\{.*\}))?$`)

// callTool asks for a call of one tool, or of all of them at once. Arguments that are not given are made after the schema of the tool.
func callTool(t *turn, req *request, rest string) bool {
	tools := req.functions()
	switch strings.ToLower(strings.TrimSuffix(rest, ".")) {
	case "all tools":
		for _, f := range tools {
			t.calls = append(t.calls, f.example())
		}
		return len(tools) > 0
	case "a tool":
		if len(tools) > 0 {
			t.calls = append(t.calls, tools[0].example())
		}
		return len(tools) > 0
	}
	m := toolNamed.FindStringSubmatch(rest)
	if m == nil {
		return false
	}
	name := strings.TrimSuffix(m[1], ".")
	for _, f := range tools {
		switch {
		case f.Function.Name != name:
		case m[2] == "":
			t.calls = append(t.calls, f.example())
			return true
		case json.Valid([]byte(m[2])):
			t.calls = append(t.calls, call{name: name, arguments: m[2]})
			return true
		}
	}
	return false
}

func refuse(t *turn, _ *request, rest string) bool {
	t.refusal = rest
	if rest == "" {
		t.refusal = "I can't help with that."
	}
	return true
}

func finishWith(t *turn, _ *request, rest string) bool {
	switch rest {
	case "stop", "length", "content_filter", "tool_calls":
		t.finish = rest
		return true
	}
	return false
}

// report sets the numbers of the usage.
func report(t *turn, _ *request, rest string) bool {
	m := twoNumbers.FindStringSubmatch(rest)
	if m == nil {
		return false
	}
	prompt, _ := strconv.Atoi(m[1])
	completion, _ := strconv.Atoi(m[2])
	t.usage = &usage{Prompt: prompt, Completion: completion, Total: prompt + completion}
	return true
}

func waitFor(t *turn, _ *request, rest string) bool {
	d, err := time.ParseDuration(strings.TrimSuffix(rest, "."))
	if err != nil || d < 0 {
		return false
	}
	t.wait = d
	return true
}

func failWith(t *turn, _ *request, rest string) bool {
	if rest == "midway" {
		t.midway = faulted
		return true
	}
	m := statusWait.FindStringSubmatch(rest)
	if m == nil {
		return false
	}
	var wait time.Duration
	if m[2] != "" {
		var err error
		if wait, err = time.ParseDuration(strings.TrimSuffix(m[2], ".")); err != nil {
			return false
		}
	}
	status, _ := strconv.Atoi(m[1])
	t.failure = failureOf(status)
	t.failure.retryAfter = wait
	return true
}

func breakOff(t *turn, _ *request, rest string) bool {
	t.midway = cut
	return rest == ""
}

// recall answers with what the user said before, as far as it is in the request: it shows what of a conversation has come along.
func recall(t *turn, req *request, rest string) bool {
	if rest != "" {
		return false
	}
	var said []string
	for i, m := range req.Messages {
		if m.Role == "user" && i < req.lastQuestion() {
			said = append(said, texts(m.Content)...)
		}
	}
	if len(said) == 0 {
		return say(t, req, "You told me nothing before.")
	}
	return say(t, req, "You told me: "+strings.Join(said, " / "))
}

// quote answers with the text from the web that is in the request.
func quote(t *turn, req *request, rest string) bool {
	if rest != "" {
		return false
	}
	for _, m := range req.Messages {
		if m.Name != contract.WebContextName {
			continue
		}
		// The first line of the block delimits it, and the second is for models.
		lines := strings.Split(strings.Join(texts(m.Content), "\n"), "\n")
		if len(lines) > 3 {
			return say(t, req, "The web says:\n"+strings.TrimSpace(strings.Join(lines[2:len(lines)-1], "\n")))
		}
	}
	return say(t, req, "There is nothing from the web in this request.")
}
