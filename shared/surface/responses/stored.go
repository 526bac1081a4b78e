package responses

import (
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// Link is a response of a chain.
type Link struct {
	Input  []byte // array of items
	Output []byte // array of items
}

// Continue gives a body whose input begins with the items of a chain, oldest first, and how many these are. find gives the item that a reference stands for.
func Continue(body []byte, chain []Link, find func(ref Reference) ([]byte, error)) (edited []byte, inherited int, err error) {
	var items [][]byte
	for _, link := range chain {
		for span := range rawjson.Elements(link.Input) {
			items = append(items, span.Of(link.Input))
		}
		for span := range rawjson.Elements(link.Output) {
			if it := span.Of(link.Output); !unfinished(it) {
				items = append(items, it)
			}
		}
	}
	inherited = len(items)
	own := itemsOf(rawjson.Get(body, "input"))
	n := 0
	for span := range rawjson.Elements(own) {
		it := span.Of(own)
		if rawjson.Is(rawjson.Get(it, "type"), "item_reference") {
			ref := Reference{Item: rawjson.Text(rawjson.Get(it, "id")), At: index("input", n)}
			if it, err = find(ref); err != nil {
				return nil, 0, err
			}
		}
		items = append(items, it)
		n++
	}
	return withInput(body, items), inherited, nil
}

// unfinished says whether an item is a call that broke off: no model could read it.
func unfinished(it []byte) bool {
	return rawjson.Is(rawjson.Get(it, "status"), "incomplete") && rawjson.Get(it, "call_id") != nil
}

// Listed is an input item as lists show it.
type Listed struct {
	ID   string
	Body []byte
}

// ListInput gives the input items of a response as lists show them: each with an id of its own, messages with their type and with parts.
func ListInput(request string, input []byte) []Listed {
	var list []Listed
	seen := map[string]bool{}
	for span := range rawjson.Elements(input) {
		it := span.Of(input)
		id := rawjson.Text(rawjson.Get(it, "id"))
		body := it
		if rawjson.Get(it, "type") == nil || rawjson.Is(rawjson.Get(it, "type"), "message") {
			body = listedMessage(it)
		}
		if id == "" || seen[id] {
			id = prefixOf(body) + request + "_in" + strconv.Itoa(len(list))
			body = rawjson.AppendSet(nil, body, "id", rawjson.AppendString(nil, id))
		}
		seen[id] = true
		list = append(list, Listed{id, body})
	}
	return list
}

// prefixOf is what ids of items of a type begin with.
func prefixOf(it []byte) string {
	switch rawjson.Text(rawjson.Get(it, "type")) {
	case "message":
		return "msg_"
	case "reasoning":
		return "rs_"
	case "function_call":
		return "fc_"
	case "function_call_output":
		return "fco_"
	case "custom_tool_call":
		return "ctc_"
	case "custom_tool_call_output":
		return "ctco_"
	}
	return "item_"
}

// listedMessage gives a message with its type and status, and a text as a part.
func listedMessage(it []byte) []byte {
	set := func(name string, value []byte) { it = rawjson.AppendSet(nil, it, name, value) }
	if rawjson.Get(it, "type") == nil {
		set("type", []byte(`"message"`))
	}
	if rawjson.Get(it, "status") == nil {
		set("status", []byte(`"completed"`))
	}
	if text := rawjson.Get(it, "content"); len(text) > 0 && text[0] == '"' {
		part := []byte(`[{"type":"input_text","text":`)
		if rawjson.Is(rawjson.Get(it, "role"), "assistant") {
			part = []byte(`[{"type":"output_text","annotations":[],"text":`)
		}
		set("content", append(append(part, text...), "}]"...))
	}
	return it
}
