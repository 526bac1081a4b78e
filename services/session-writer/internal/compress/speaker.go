package compress

import (
	"slices"
	"strings"
)

// Speakers of a conversation, as they stand in its text.
const (
	User      = "User"
	Assistant = "Assistant"
	System    = "System"
	Tool      = "Tool"
)

var speakers = []string{User, Assistant, System, Tool}

// Say appends what a speaker says to the text of a conversation.
func Say(b *strings.Builder, speaker, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(speaker)
	b.WriteString(": ")
	b.WriteString(text)
}

// speakerOf takes the speaker off a line.
func speakerOf(line string) (speaker, rest string) {
	name, rest, found := strings.Cut(line, ": ")
	if found && slices.Contains(speakers, name) {
		return name, rest
	}
	return "", line
}
