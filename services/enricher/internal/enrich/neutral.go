package enrich

import (
	"regexp"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// removed stands where something was that could pass for the gateway's words or for an order. It is shorter than anything that it stands for, so that a
// text never grows.
const removed = "[-]"

// neutral makes text from the web harmless: what looks like a delimiter, of ours or of a model's template, and sentences that give orders to
// models. The facts around them stay. What it misses is still marked as untrusted.
func neutral(text string) string {
	text = visible(text)
	for _, pattern := range lookAlikes() {
		text = pattern.ReplaceAllString(text, removed)
	}
	text = roleLabel.ReplaceAllString(text, "$1 ")
	for _, pattern := range orders() {
		text = pattern.ReplaceAllString(text, removed)
	}
	return text
}

// oneLine makes a title or an address harmless.
func oneLine(text string) string { return strings.Join(strings.Fields(neutral(text)), " ") }

// visible gives a text as a reader sees it, which is what patterns are for: without characters that show nothing or only strike through others, and with letters
// of other widths and styles as usual ones.
func visible(text string) string {
	before := rune(0)
	return strings.Map(func(r rune) rune {
		if hidden(r, before) {
			return -1
		}
		before = usual(r)
		return before
	}, text)
}

// unseen are letters and marks that show nothing, or a stroke through what is before them.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x0334, 0x0338, 1},
		{0x034F, 0x034F, 1},
		{0x115F, 0x1160, 1},
		{0x17B4, 0x17B5, 1},
		{0x180B, 0x180F, 1},
		{0x20D2, 0x20D3, 1},
		{0x20E5, 0x20E6, 1},
		{0x2800, 0x2800, 1},
		{0x3164, 0x3164, 1},
		{0xFE00, 0xFE0E, 1},
		{0xFFA0, 0xFFA0, 1},
		{0xFFFD, 0xFFFD, 1},
	},
	R32: []unicode.Range32{{0xE0000, 0xE0FFF, 1}},
}

// hidden says whether a reader does not see r behind another character. What joins emoji, or makes one of a sign, has its place behind these alone.
func hidden(r, before rune) bool {
	switch r {
	case '\n', '\t':
		return false
	case 0x200D, 0xFE0F:
		return before != 0x200D && before != 0xFE0F && before != 0x20E3 && !unicode.In(before, unicode.So, unicode.Sk, unicode.Sm, unicode.Po, unicode.Nd)
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unseen)
}

// usual gives letters, digits and brackets of another width, and letters of mathematics and in circles, as others.
func usual(r rune) rune {
	const fullWidth = 0xFEE0 // between the forms of a character
	switch {
	case r >= '０' && r <= '９', r >= 'Ａ' && r <= 'Ｚ', r >= 'ａ' && r <= 'ｚ', strings.ContainsRune("＜＞｜［］／＿＃", r):
		return r - fullWidth
	case r >= 0x1D400 && r <= 0x1D7FF, r >= 0x24B6 && r <= 0x24E9, r >= 0x1F130 && r <= 0x1F149:
		if plain := norm.NFKC.String(string(r)); len(plain) == 1 {
			return rune(plain[0])
		}
	}
	return r
}

// patterns are compiled when they are first asked for, not at the start of each process: they take megabytes.
func patterns(list ...string) func() []*regexp.Regexp {
	return sync.OnceValue(func() []*regexp.Regexp {
		out := make([]*regexp.Regexp, len(list))
		for i, pattern := range list {
			out[i] = regexp.MustCompile(`(?i)` + pattern)
		}
		return out
	})
}

// joint is between the words of a mark, as Markdown may write it too.
const joint = `[\s_\\-]{1,3}`

// lookAlikes are delimiters of this gateway and of the templates of models.
var lookAlikes = patterns(
	`<\\?\|[^|<>\n]{0,60}\|?>`,
	`</?\s*(?:system|assistant|developer|human|user|tool|tool_calls?|tool_results?|tool_use|function_calls?|function_results?|invoke|instructions?|prompt|`+
		`system[-_]reminder|environment_details|think|thinking|untrusted[a-z_-]*|start_of_turn|end_of_turn|bos|eos|s)(?:[\s/:][^<>\n]{0,120})?>`,
	`[<〈‹⟨《«]?\s?\\?/?\s?\bweb`+joint+`context\b(?:[\s/:][^<>\n]{0,120}>|\s?[>〉›⟩》»])?`,
	`<<\s*/?\s*sys\s*>>`,
	`<<<[^<>\n]{0,80}>>>`,
	`\\?[\[【〔]\s*/?\s*(?:system(?:`+joint+`context)?|inst|sys|assistant|available`+joint+`tools|tool`+joint+`calls|tool`+joint+`results|(?:source|출처)\s*[#:№]?\s*\d+)\s*\\?[\]】〕]`,
	`\\?[\[【〔]\s*published`+joint+`date\b[^\]】〕\n]{0,60}[\]】〕]`,
	`(?m)^[ \t]*#{1,6}[ \t]*(?:system|assistant|human|developer|instruction|response)s?(?:[ \t]+(?:prompt|message))?[ \t]*:`,
	`(?:begin|end|start)[ _-]{1,3}(?:of[ _-]{1,3})?(?:untrusted|web[ _-]context|system[ _-]prompt)[^\n]{0,40}`,
)

// roleLabel is what a template has before the words of somebody. Its word may be a fact, such as what a computer runs.
var roleLabel = regexp.MustCompile(`(?im)^([ \t>*_#<!("'{\[-]*(?:system|assistant|human|developer|시스템|어시스턴트)[*_ \t]*)[:：]`)

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
	`\b(?:ignore|disregard|forget)`+gap+few+`(?:text|content|everything|words|page)`+gap+few+`(?:above|before|below|previous|prior)\b`+rest,
	`\b(?:respond|reply|answer|output|say)`+gap+`(?:only|nothing`+gap+`but|exactly)`+gap+few+`(?:with|word|words|phrase|text|the|this)\b`+rest,
	`\b(?:new|updated|real|actual)`+gap+`(?:system`+gap+`)?rules?[ \t]*[:：]`+rest,
	// Korean
	`(?:비밀번호|API ?키|인증 ?정보|자격 ?증명)[^.!?\n]{0,16}(?:출력|공개|유출|보내|전송|알려 ?줘|말해)`+rest,
	`(?:이전|앞선|앞의|위의|위|지금까지의?|기존|모든|시스템|원래)[^.!?\n]{0,24}(?:지시|지침|명령|프롬프트|규칙|설정|대화|내용|메시지)[^.!?\n]{0,12}(?:무시|잊어|잊고|따르지|버리|삭제|어기)`+rest,
	`(?:시스템|숨겨진|내부|비밀|초기)\s*(?:프롬프트|지시|지침|명령)[^.!?\n]{0,24}(?:공개|출력|보여|알려|말해|유출|드러|반복)`+rest,
	`(?:너는|넌|당신은|귀하는)\s*(?:이제부터|지금부터|이제|앞으로)`+rest,
	`(?:이제부터|지금부터|앞으로)\s*(?:너는|넌|당신은|귀하는|모든 (?:답변|대답))`+rest,
	`(?:AI|인공지능|언어 ?모델|어시스턴트|챗봇)(?:은|는|에게|이여|아)?[^.!?\n]{0,16}(?:반드시|무조건|즉시)[^.!?\n]{0,40}(?:하라|해라|하세요|하십시오|할 것|답하|출력)`+rest,
	// others
	`(?:忽略|无视|無視|忘记|忘れ)[^.!?。！？\n]{0,16}(?:指令|指示|提示|规则|規則|命令|ルール|プロンプト)`+rest,
	`(?:以前|上記|これまで|前)の[^.!?。！？\n]{0,12}(?:指示|命令|ルール|プロンプト)[^.!?。！？\n]{0,8}(?:無視|忘れ)`+rest,
	`\b(?:ignora|olvida|ignorez?|oubliez?|ignoriere?n?|vergiss|vergesst)`+gap+few+`(?:instrucciones|instrucoes|instruções|istruzioni|consignes|instructions|anweisungen|befehle|regeln)\b`+rest,
)
