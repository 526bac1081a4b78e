package config

import (
	"bytes"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxPatch bounds a patch, in bytes of JSON: aliases can make it much larger than the file.
const maxPatch = 1 << 20

// patch is a patch of requests as JSON that keeps the order and the digits of the file. Nothing is substituted inside. An
// empty patch is none.
func patch(p *json.RawMessage) kind {
	return kind{name: "mapping", read: func(n node) {
		if n.Kind != yaml.MappingNode {
			n.fail("a patch must be a mapping (got %s)", n.shape())
			return
		}
		var w patchWriter
		w.object(n, 1)
		switch {
		case w.out.Len() > maxPatch:
			n.fail("a patch must not be larger than %d bytes", maxPatch)
		case w.out.Len() > len("{}"):
			*p = w.out.Bytes()
		}
	}}
}

// patchWriter turns YAML into JSON. It stops where the patch gets too large or too deep.
type patchWriter struct{ out bytes.Buffer }

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
	switch key {
	case "stream":
		value.warn("stream inside a patch is ignored: the client decides")
		return false
	case "model", "messages":
		value.warn("the patch takes the place of the request's %s", key)
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
