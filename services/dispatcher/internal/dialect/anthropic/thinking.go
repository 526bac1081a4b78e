package anthropic

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// detail gives the entry of reasoning_details for a block of thinking. The values are raw strings. There is none without a signature.
func detail(index int, thought, signature []byte) []byte {
	if len(inner(signature)) == 0 {
		return nil
	}
	return endDetail(typed("reasoning.text").set("text", thought).set("signature", signature), index)
}

// hiddenDetail gives the entry for a block of thinking that nobody but the provider can read.
func hiddenDetail(index int, data []byte) []byte {
	if len(inner(data)) == 0 {
		return nil
	}
	return endDetail(typed("reasoning.encrypted").set("data", data), index)
}

func endDetail(f fields, index int) []byte {
	return f.set("format", []byte(format)).set("index", strconv.AppendInt(nil, int64(index), 10)).end()
}

// thinkingBlocks makes the blocks of a message out of its reasoning_details. Neighbours with one index are pieces of one block, which is how
// OpenRouter streams them. Entries of other makers and entries without a signature are left out: the API refuses them.
func thinkingBlocks(details []byte) []block {
	var blocks []block
	var index string // of the block that is being put together
	var thought, signature []byte
	flush := func() {
		if len(inner(signature)) > 0 {
			blocks = append(blocks, block{"thinking", typed("thinking").set("thinking", quoted(thought)).set("signature", signature).end()})
		}
		thought, signature = thought[:0], nil
	}
	for e := range rawjson.Elements(details) {
		entry := rawjson.Given(e.Of(details))
		if string(entry["format"]) != format {
			continue
		}
		switch rawjson.Text(entry["type"]) {
		case "reasoning.text":
			if i := string(entry["index"]); i != index || len(inner(signature)) > 0 {
				flush()
				index = i
			}
			thought = append(thought, inner(entry["text"])...)
			signature = entry["signature"]
		case "reasoning.encrypted":
			flush()
			if data := entry["data"]; len(inner(data)) > 0 {
				blocks = append(blocks, block{"redacted_thinking", typed("redacted_thinking").set("data", data).end()})
			}
		}
	}
	flush()
	return blocks
}
