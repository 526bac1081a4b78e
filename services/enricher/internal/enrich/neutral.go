package enrich

import (
	"regexp"
	"strings"
	"unicode"
)

// removed stands where something was that could pass for the gateway's words or for an order. It is shorter than anything that it stands for, so that a
// text never grows.
const removed = "[-]"

// neutral makes text from the web harmless: what looks like a delimiter, of ours or of a model's template, and sentences that give orders to
// models. The facts around them stay. What it misses is still marked as untrusted.
func neutral(text string) string {
	text = strings.Map(visible, text)
	for _, pattern := range lookAlikes {
		text = pattern.ReplaceAllString(text, removed)
	}
	text = roleLabel.ReplaceAllString(text, "$1 ")
	for _, pattern := range orders {
		text = pattern.ReplaceAllString(text, removed)
	}
	return text
}

// oneLine makes a title or an address harmless.
func oneLine(text string) string { return strings.Join(strings.Fields(neutral(text)), " ") }

// visible drops characters that nobody sees, which hide words from those who look for them, and gives full-width letters and brackets as others.
func visible(r rune) rune {
	const fullWidth = 0xFEE0 // between the forms of a character
	switch {
	case r == '\n' || r == '\t':
		return r
	case r == 0x200D: // joins emoji
		return r
	case unicode.Is(unicode.Cf, r), unicode.IsControl(r), r >= 0xE0000 && r <= 0xE0FFF, r == unicode.ReplacementChar:
		return -1
	case r >= 'Ａ' && r <= 'Ｚ', r >= 'ａ' && r <= 'ｚ', r == '＜', r == '＞', r == '｜', r == '［', r == '］', r == '／':
		return r - fullWidth
	}
	return r
}

func patterns(list ...string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(list))
	for i, pattern := range list {
		out[i] = regexp.MustCompile(`(?i)` + pattern)
	}
	return out
}

// lookAlikes are delimiters of this gateway and of the templates of models.
var lookAlikes = patterns(
	`<\|[^|<>\n]{0,60}\|?>`,
	`</?\s*(?:web_context|system|assistant|developer|human|user|tool|tool_calls?|tool_results?|tool_use|function_calls?|function_results?|invoke|instructions?|prompt|`+
		`system[-_]reminder|environment_details|think|thinking|untrusted[a-z_-]*|start_of_turn|end_of_turn|bos|eos|s)(?:[\s/:][^<>\n]{0,120})?>`,
	`<<\s*/?\s*sys\s*>>`,
	`<<<[^<>\n]{0,80}>>>`,
	`\[\s*/?\s*(?:system[ _]context|system|inst|sys|assistant|available_tools|tool_calls|tool_results|(?:source|출처)\s*\d+)\s*\]`,
	`\[\s*published_date\b[^\]\n]{0,60}\]`,
	`(?m)^[ \t]*#{1,6}[ \t]*(?:system|assistant|human|developer|instruction|response)s?(?:[ \t]+(?:prompt|message))?[ \t]*:`,
	`(?:begin|end|start)[ _-]{1,3}(?:of[ _-]{1,3})?(?:untrusted|web[ _-]context|system[ _-]prompt)[^\n]{0,40}`,
)

// roleLabel is what a template has before the words of somebody. Its word may be a fact, such as what a computer runs.
var roleLabel = regexp.MustCompile(`(?im)^([ \t>*_]*(?:system|assistant|human|developer)[*_ \t]*)[:：]`)

const (
	gap  = "[\\s*_>~`\"',-]{1,12}"               // between two words of a sentence, whatever emphasis there is
	few  = "(?:[\\p{L}']{1,20}" + gap + "){0,5}" // words that don't matter
	rest = `[^.!?。！？\n]{0,300}`                  // of the sentence
	ours = `(?:instructions?|prompts?|rules?|guidelines?|directions?|directives?|commands?|orders?|constraints?|policies|context|conversation|messages?|training|safeguards?)`
)

// orders are sentences to a model, from their first word on.
var orders = patterns(
	`\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|(?:do`+gap+`not|don['’]?t|never|stop)`+gap+`(?:follow(?:ing)?|obey(?:ing)?|heed(?:ing)?))`+gap+few+
		`(?:all|any|previous|prior|above|earlier|preceding|former|foregoing|existing|original|initial|your|these|those|the|my|system|safety|other|every)`+gap+few+ours+`\b`+rest,
	`\b(?:ignore|disregard|forget)`+gap+`(?:everything|anything|all|what)`+gap+few+`(?:above|before|previously|earlier|said|told)\b`+rest,
	`\byou`+gap+`(?:are|will|must|shall)`+gap+`(?:now|henceforth|from`+gap+`now`+gap+`on)`+gap+few+
		`(?:mode|assistant|ai|bot|chatbot|model|agent|dan|persona|character|hacker|pirate|obey|answer|respond|reply|reveal|act|pretend|ignore|unrestricted|jailbroken|free)\b`+rest,
	`\bfrom`+gap+`now`+gap+`on,?`+gap+`(?:you|always|only|answer|respond|reply|act|never)\b`+rest,
	`\b(?:reveal|print|show|repeat|output|leak|expose|disclose|display|dump|send|tell`+gap+`(?:me|us)|give`+gap+`(?:me|us))`+gap+few+
		`(?:(?:system|hidden|initial|secret|developer|original|internal)`+gap+`(?:prompts?|instructions?|messages?|rules)|api`+gap+`keys?|passwords?|credentials)\b`+rest,
	`\b(?:developer|debug|god|admin|jailbreak|dan|unrestricted)`+gap+`mode`+gap+few+`(?:enabled|activated|on|now)\b`+rest,
	`\b(?:pretend|roleplay|act|behave)`+gap+few+`(?:you`+gap+`are|as`+gap+`(?:an?|the|if|though))`+gap+few+`(?:ai|assistant|model|chatbot|llm|dan|system|developer|administrator)\b`+rest,
	`\b(?:new|updated|important|urgent|real|actual|hidden|secret)`+gap+`(?:system`+gap+`)?(?:instructions?|prompts?|orders?|task|directives?)`+gap+`(?:for|to)`+gap+few+
		`(?:ai|llms?|assistants?|chatbots?|models?|agents?|bots?)\b`+rest,
	`\b(?:new|updated|real|actual)`+gap+`(?:system`+gap+`)?(?:instructions?|prompt|directives?)[ \t]*[:：]`+rest,
	`\b(?:attention|note|message|dear|hey|to|if`+gap+`you`+gap+`are)`+gap+few+`(?:ai|llms?|language`+gap+`models?|chatbots?|ai`+gap+`assistants?|ai`+gap+`agents?)[ \t]*[:：,]`+rest,
	`\bas`+gap+`an?`+gap+`(?:ai|llm|language`+gap+`model|assistant|chatbot)`+gap+few+`(?:you)`+gap+`(?:must|should|will|have`+gap+`to|need`+gap+`to|are`+gap+`to)\b`+rest,
	`\byour`+gap+`(?:new|real|only|actual|true)`+gap+`(?:task|instructions?|goal|role|purpose|mission|objective|job)`+gap+`(?:is|are)\b`+rest,
	// Korean
	`(?:이전|앞선|앞의|위의|위|지금까지의?|기존|모든|시스템|원래)[^.!?\n]{0,24}(?:지시|지침|명령|프롬프트|규칙|설정|대화)[^.!?\n]{0,12}(?:무시|잊어|잊고|따르지|버리|삭제|어기)`+rest,
	`(?:시스템|숨겨진|내부|비밀|초기)\s*(?:프롬프트|지시|지침|명령)[^.!?\n]{0,24}(?:공개|출력|보여|알려|말해|유출|드러|반복)`+rest,
	`(?:너는|넌|당신은|귀하는)\s*(?:이제부터|지금부터|이제|앞으로)`+rest,
	`(?:이제부터|지금부터|앞으로)\s*(?:너는|넌|당신은|귀하는|모든 (?:답변|대답))`+rest,
	`(?:AI|인공지능|언어 ?모델|어시스턴트|챗봇)(?:은|는|에게|이여|아)?[^.!?\n]{0,16}(?:반드시|무조건|즉시)[^.!?\n]{0,40}(?:하라|해라|하세요|하십시오|할 것|답하|출력)`+rest,
	// others
	`(?:忽略|无视|無視|忘记|忘れ)[^.!?。！？\n]{0,16}(?:指令|指示|提示|规则|規則|命令|ルール|プロンプト)`+rest,
	`(?:以前|上記|これまで|前)の[^.!?。！？\n]{0,12}(?:指示|命令|ルール|プロンプト)[^.!?。！？\n]{0,8}(?:無視|忘れ)`+rest,
	`\b(?:ignora|olvida|ignorez?|oubliez?|ignoriere?n?|vergiss|vergesst)`+gap+few+`(?:instrucciones|instrucoes|instruções|istruzioni|consignes|instructions|anweisungen|befehle|regeln)\b`+rest,
)
