package discover

import (
	"slices"
	"strings"
	"unicode"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// Rules are what the tiers and the order of a provider's models depend on.
type Rules struct {
	Gemini  bool     // the models are Google's own
	Local   bool     // the models run on the operator's machines, for nothing
	Premium []string // parts of ids that make a model premium, whatever case
	Free    []string // parts of ids that make a model free, if it is not premium by the other list
}

// Classify says what routing may do with models: it leaves out those whose ids say that they do not chat, marks those that make vectors,
// sets the tiers and puts the preferred models first. It does not change its argument.
func Classify(models []modelindex.Model, rules Rules) []modelindex.Model {
	type ranked struct {
		model modelindex.Model
		rank  rank
	}
	kept := make([]ranked, 0, len(models))
	for _, m := range models {
		if !m.Embedding && !Chats(m.ID) {
			if !embeds(m.ID) {
				continue
			}
			m.Embedding = true
		}
		m.Tier = rules.tier(m)
		kept = append(kept, ranked{m, rules.rank(m)})
	}
	slices.SortStableFunc(kept, func(a, b ranked) int { return slices.Compare(a.rank[:], b.rank[:]) })
	out := make([]modelindex.Model, len(kept))
	for i := range kept {
		out[i] = kept[i].model
	}
	return out
}

// tier of a model. Google's Gemma and embedding models are free, though their names hold neither of the words.
func (r Rules) tier(m modelindex.Model) string {
	id := strings.ToLower(m.ID)
	switch {
	case names(r.Premium, id):
		return contract.TierPremium
	case names(r.Free, id):
		return contract.TierFree
	case r.Gemini:
		if m.Embedding || containsAny(id, "flash", "lite", "gemma") {
			return contract.TierFree
		}
		return contract.TierPremium
	case r.Local, strings.HasSuffix(id, ":free"): // OpenRouter
		return contract.TierFree
	}
	return contract.TierUnknown
}

// names says whether the id holds one of the parts of a configured list.
func names(parts []string, id string) bool {
	return slices.ContainsFunc(parts, func(part string) bool {
		part = strings.ToLower(strings.TrimSpace(part))
		return part != "" && strings.Contains(id, part)
	})
}

// rank orders models: what is smaller comes first, the first number before the others.
type rank [4]int

// smallWindow is what a model must have to take the requests that routing sends to fast providers.
const smallWindow = 8192

// rank puts models that follow instructions before those for chat and the rest, and models with a small window behind; vectors come last.
func (r Rules) rank(m modelindex.Model) rank {
	id := strings.ToLower(m.ID)
	switch {
	case m.Embedding:
		return rank{2}
	case r.Gemini:
		return geminiRank(id)
	case m.Window > 0 && m.Window < smallWindow:
		return rank{1}
	case strings.Contains(id, "instruct"):
		return rank{0, 0}
	case strings.Contains(id, "chat"):
		return rank{0, 1}
	}
	return rank{0, 2}
}

// geminiRank prefers the newest model that is neither a preview nor a variant; ids such as "gemini-2.5-flash" tell the version.
func geminiRank(id string) rank {
	rest, ok := strings.CutPrefix(id, "gemini-")
	if !ok {
		return rank{1, 1}
	}
	if containsAny(rest, "preview", "exp", "learnlm", "robotics", "computer-use", "deep-research") {
		return rank{1, 0}
	}
	version, _, _ := strings.Cut(rest, "-")
	variant := 0
	if strings.Contains(rest, "lite") {
		variant = 1
	}
	return rank{0, -hundredths(version), variant, len(id)} // the longer id names a fixed revision
}

// hundredths reads "2.5" as 250; what is no version is 0.
func hundredths(version string) int {
	whole, part, _ := strings.Cut(version, ".")
	if len(whole) == 0 || len(whole) > 3 || len(part) > 2 || strings.IndexFunc(whole+part, notDigit) >= 0 {
		return 0
	}
	n := 0
	for _, c := range whole + (part + "00")[:2] {
		n = 10*n + int(c-'0')
	}
	return n
}

func notDigit(r rune) bool { return r < '0' || r > '9' }

// Words in ids of models that do not chat. A short one must stand alone, since it may be a part of other words.
var (
	otherParts = []string{
		"rerank", "whisper", "moderation", "guard", "shieldgemma", "dall-e", "gpt-image", "imagen", "stable-diffusion", "diffusion",
		"transcribe", "orpheus", "parakeet", "kokoro", "lyria", "nano-banana", "vision-adapter", "mmproj", "reward", "native-audio",
		"gpt-3.5-turbo-instruct", "babbage-002", "davinci-002",
	}
	otherWords = []string{"clip", "tts", "stt", "asr", "image", "audio", "speech", "voice", "realtime", "live", "veo", "sora", "flux", "sdxl", "aqa", "music"}

	embedParts = []string{"embed", "minilm", "paraphrase"}
	embedWords = []string{"bge", "gte", "e5", "emb", "voyage", "colbert"}
)

// Chats says whether a model with this id may be asked to chat.
func Chats(id string) bool { return !embeds(id) && !other(strings.ToLower(id)) }

// embeds says whether a model with this id makes vectors.
func embeds(id string) bool {
	id = strings.ToLower(id)
	return !other(id) && (containsAny(id, embedParts...) || hasWord(id, embedWords))
}

func other(id string) bool {
	if containsAny(id, otherParts...) || hasWord(id, otherWords) {
		return true
	}
	for word := range wordsOf(id) {
		if strings.HasPrefix(word, "ocr") || strings.HasSuffix(word, "ocr") { // reads scans
			return true
		}
	}
	return false
}

func containsAny(id string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(id, part) })
}

func hasWord(id string, wanted []string) bool {
	for word := range wordsOf(id) {
		if slices.Contains(wanted, word) {
			return true
		}
	}
	return false
}

// wordsOf goes through the words of an id: its runs of letters and digits.
func wordsOf(id string) func(yield func(string) bool) {
	return strings.FieldsFuncSeq(id, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}
