package gemini

import "strings"

// Family is the lower-case name of a model, which tells what its generation can do. An unknown name is a newer model.
type Family string

// FamilyOf reads the name of a model, without the folders that may stand before it.
func FamilyOf(model string) Family {
	return Family(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]))
}

func (f Family) begins(prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(string(f), p) {
			return true
		}
	}
	return false
}

// signs says whether the model checks the signatures of calls: all do since Gemini 3.
func (f Family) signs() bool { return !f.begins("gemini-1", "gemini-2", "gemma-") }

// pro says whether the model is of the line that can't be told not to think.
func (f Family) pro() bool { return strings.Contains(string(f), "-pro") }

// thinks says whether the thinking of the model can be configured at all.
func (f Family) thinks() bool {
	return !f.begins("gemini-1", "gemini-2.0") && !f.oldGemma() && !strings.Contains(string(f), "-image") && !strings.Contains(string(f), "-tts")
}

// Penalizes says whether the model takes penalties: "Penalty is not enabled" since Gemini 2.5.
func (f Family) Penalizes() bool { return f.begins("gemini-1", "gemini-2.0") }

// Formats says whether the model can be told to answer in JSON.
func (f Family) Formats() bool { return !f.oldGemma() }

// FormatsCalls says whether that goes together with tools: "Function calling with a response mime type: 'application/json' is unsupported"
// before Gemini 3.
func (f Family) FormatsCalls() bool { return f.signs() }

// Instructed says whether the model takes a system instruction.
func (f Family) Instructed() bool { return !f.oldGemma() }

// Calls says whether the model calls functions.
func (f Family) Calls() bool { return !f.oldGemma() }

// oldGemma says whether the model is of the open line before Gemma 4, which takes little but turns of text and images.
func (f Family) oldGemma() bool { return f.begins("gemma-1", "gemma-2", "gemma-3") }
