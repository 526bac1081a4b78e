package config

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxPatch bounds a patch, in bytes of JSON: aliases can make it much larger than the file.
const maxPatch = 1 << 20

// patch is a patch of requests, as JSON that keeps the order and the digits of the file. Nothing is substituted inside. An empty
// patch is none.
func patch(p *json.RawMessage) kind {
	return object(p, map[string]string{
		"model": "the patch takes the place of the request's model", "messages": "the patch takes the place of the request's messages",
	}, "stream inside a patch is ignored: the client decides")
}

// defaults are members of requests that the client may set itself, in the same form.
func defaults(p *json.RawMessage) kind {
	const always = "a default for it is ignored: every request has it"
	return object(p, nil, always, "model", "messages", "prompt", "input")
}

// object is a JSON object. odd tells what is said about some of its members, ignored what is said about "stream" and others, which are left out.
func object(p *json.RawMessage, odd map[string]string, ignored string, others ...string) kind {
	return kind{name: "mapping", read: func(n node) {
		if n.Kind != yaml.MappingNode {
			n.fail("must be a mapping (got %s)", n.shape())
			return
		}
		w := patchWriter{odd: odd, ignored: ignored, leftOut: append(others, "stream")}
		w.object(n, 1)
		switch {
		case w.out.Len() > maxPatch:
			n.fail("must not be larger than %d bytes", maxPatch)
		case w.out.Len() > len("{}"):
			*p = w.out.Bytes()
		}
	}}
}

// patchWriter turns YAML into JSON. It stops where the patch gets too large or too deep.
type patchWriter struct {
	out     bytes.Buffer
	odd     map[string]string
	ignored string
	leftOut []string
}

func (w *patchWriter) object(n node, depth int) {
	w.out.WriteByte('{')
	start := w.out.Len()
	n.pairs(func(key, value node) {
		switch {
		case w.out.Len() > maxPatch, depth == 1 && !w.takes(key.Value, value):
			return
		case key.ShortTag() != "!!str":
			value.fail("%s is not a text: put the key in quotes", key.shown())
			return
		}
		if w.out.Len() > start {
			w.out.WriteByte(',')
		}
		w.text(key.Value)
		w.out.WriteByte(':')
		w.value(value, depth)
	})
	w.out.WriteByte('}')
}

// takes says whether a member of the outermost object is wanted (C-14).
func (w *patchWriter) takes(key string, value node) bool {
	if slices.Contains(w.leftOut, key) {
		value.warn("%s", w.ignored)
		return false
	}
	if text := w.odd[key]; text != "" {
		value.warn("%s", text)
	}
	return true
}

func (w *patchWriter) value(n node, depth int) {
	switch {
	case depth == maxDepth:
		n.fail("is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.MappingNode:
		w.object(n, depth+1)
	case n.Kind == yaml.SequenceNode:
		w.array(n, depth+1)
	default:
		w.scalar(n)
	}
}

func (w *patchWriter) array(n node, depth int) {
	w.out.WriteByte('[')
	start := w.out.Len()
	n.each(func(item node) {
		if w.out.Len() > maxPatch {
			return
		}
		if w.out.Len() > start {
			w.out.WriteByte(',')
		}
		w.value(item, depth)
	})
	w.out.WriteByte(']')
}

func (w *patchWriter) scalar(n node) {
	switch n.ShortTag() {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		w.boolean(n)
	case "!!int", "!!float":
		w.number(n)
	default: // text, and dates, which JSON has as text
		w.text(n.Value)
	}
}

func (w *patchWriter) boolean(n node) {
	switch value := strings.ToLower(n.Value); value {
	case "true", "false":
		w.out.WriteString(value)
	default:
		n.fail("must be true or false (got %s)", n.shown())
	}
}

// number keeps the text where JSON has the same notation, and converts the others: 0x1f, 1_000, +1, .5.
func (w *patchWriter) number(n node) {
	if json.Valid([]byte(n.Value)) {
		w.out.WriteString(n.Value)
		return
	}
	plain := strings.ReplaceAll(n.Value, "_", "")
	if i, ok := new(big.Int).SetString(plain, 0); ok {
		w.out.WriteString(i.String())
		return
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err == nil {
		var digits []byte
		if digits, err = json.Marshal(f); err == nil {
			w.out.Write(digits)
			return
		}
	}
	n.fail("JSON has no number such as %s", n.shown())
}

func (w *patchWriter) text(s string) {
	enc := json.NewEncoder(&w.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text into memory
	w.out.Truncate(w.out.Len() - len("\n"))
}
