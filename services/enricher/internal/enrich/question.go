package enrich

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai/rawjson"
	"hydrallm/shared/surface"
)

// question is the text of the last message, when that is the user's.
type question struct {
	text  string // as it is, or its ends if it is long
	plain string // without what agents add to the words of their user
	query string // for engines, and for choosing passages
}

// maxQuery is how long a query may be, in characters.
const maxQuery = 256

// questionOf reads the question of a request. ok is false when the last message is not the user's: an agent goes on.
func questionOf(r *contract.Request, body []byte) (q question, ok bool) {
	list, err := surface.FormOf(r.Surface).Messages(body)
	if err != nil || len(list) == 0 {
		return q, false
	}
	last := len(list) - 1
	begin := last
	for begin > 0 && list[begin].Within { // one message of the client may be several here: results of tools, and words beside them
		begin--
	}
	if !rawjson.Is(rawjson.Get(list[begin].Body, "role"), "user") || !rawjson.Is(rawjson.Get(list[last].Body, "role"), "user") {
		return q, false
	}
	q.text = ends(textOf(rawjson.Get(list[last].Body, "content")))
	q.plain = withoutBoilerplate(q.text)
	q.query = inOneLine(address.ReplaceAllString(q.plain, " "))
	return q, true
}

// inOneLine makes a query of a text.
func inOneLine(text string) string { return cut(strings.Join(strings.Fields(text), " "), maxQuery) }

// textOf gives the text of a content: a string, a part, or an array of them.
func textOf(content []byte) string {
	if len(content) == 0 {
		return ""
	}
	switch content[0] {
	case '"':
		return rawjson.Text(content)
	case '{':
		return rawjson.Text(rawjson.Get(content, "text"))
	}
	var texts []string
	for span := range rawjson.Elements(content) {
		if text := textOf(span.Of(content)); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n")
}

// maxEnd is how much is looked at of either end of a long text, in bytes: whoever pastes a document asks before or behind it.
const maxEnd = 64 << 10

// ends gives a text, or the two ends of a long one.
func ends(text string) string {
	if len(text) <= 2*maxEnd {
		return text
	}
	return strings.ToValidUTF8(text[:maxEnd], "") + "\n" + strings.ToValidUTF8(text[len(text)-maxEnd:], "")
}

// cut gives the beginning of a text, of at most so many characters, and whole words if there are any.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			text = text[:i]
			break
		}
		n++
	}
	if i := strings.LastIndexByte(text, ' '); i > len(text)/2 {
		text = text[:i]
	}
	return text
}

// boilerplate is what agents add to the words of their users: blocks about the surroundings, time stamps, and how to keep silent.
var boilerplate = func() (list []*regexp.Regexp) {
	for _, tag := range []string{
		"system-reminder", "environment_details", "environment_context", "additional_data", "attached_files", "user_info", "project_layout", "ide_selection",
		"ide_opened_file", "local-command-stdout", "local-command-caveat", "command-name", "command-message", "command-args", "context", "editorContext",
		"reminderInstructions", "user_instructions", "INSTRUCTIONS", "open_and_recently_viewed_files",
	} {
		list = append(list, regexp.MustCompile(`(?s)<`+tag+`(?:\s[^>]*)?>.*?</`+tag+`>`))
	}
	for _, pattern := range []string{
		"(?ms)^[^\\n]{0,80}\\(untrusted[^)\\n]{0,80}\\):?[ \\t]*\\n+```[a-z]*\\n.*?^```[ \\t]*$",
		`(?ms)^[^\n]{0,80}\(untrusted[^)\n]{0,80}\):?[ \t]*\n+\{.*?^\}[ \t]*$`,
		`(?mi)^[^\n]{0,80}\(untrusted[^)\n]{0,80}\):?[ \t]*$`,
		`(?s)<<<EXTERNAL_UNTRUSTED_CONTENT.*?<<<END_EXTERNAL_UNTRUSTED_CONTENT[^>]*>>>`,
		`(?m)^[ \t]*\[[^\]\n]{0,80}\d{4}-\d{2}-\d{2}[T ]\d{1,2}:\d{2}[^\]\n]{0,40}\][ \t]*`,
		`(?m)^[ \t]*\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2})?(?:\.\d+)?(?:Z|[+-]\d{2}:?\d{2})?[ \t]+`,
		`(?mi)^[ \t]*\[message_id:[^\]\n]*\][ \t]*$`,
		`(?mi)^[ \t]*(?:the )?(?:current|local) (?:date|time|date and time|datetime|timestamp)(?: is)?\b[ \t]*[:=(][^\n]*$`,
		`(?m)^[^\n]*\b(?:NO_REPLY|HEARTBEAT_OK|SILENT_REPLY|NO_RESPONSE)\b[^\n]*$`,
		`(?mi)^[^\n]*\bsilent[ -]repl(?:y|ies)\b[^\n]*$`,
	} {
		list = append(list, regexp.MustCompile(pattern))
	}
	return list
}()

// withoutBoilerplate gives the words of the user.
func withoutBoilerplate(text string) string {
	for _, pattern := range boilerplate {
		text = pattern.ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}
