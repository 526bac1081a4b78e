package config

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// patch reads a request patch as JSON that keeps the order and the digits of the file (R-182, REQ-02). Nothing is substituted inside.
func patch(p *json.RawMessage) func(node) {
	return func(n node) {
		if n.null() {
			return
		}
		if n.Kind != yaml.MappingNode {
			n.fail("a patch must be a mapping, is %s", n.shape())
			return
		}
		w := patchWriter{budget: maxPatchNodes}
		w.object(n, true)
		if w.budget < 0 {
			n.fail("a patch may not hold more than %d values", maxPatchNodes)
			return
		}
		*p = w.out.Bytes()
	}
}

// maxPatchNodes bounds what aliases can blow a patch up to.
const maxPatchNodes = 100_000

type patchWriter struct {
	out    bytes.Buffer
	budget int
}

func (w *patchWriter) object(n node, top bool) {
	w.out.WriteByte('{')
	first := true
	n.members(func(key string, value node) {
		if top {
			switch key {
			case "stream":
				value.warn("stream inside a patch is ignored: the client decides")
				return
			case "model", "messages":
				value.warn("the patch replaces the request's %s", key)
			}
		}
		if !first {
			w.out.WriteByte(',')
		}
		first = false
		w.text(key)
		w.out.WriteByte(':')
		w.value(value)
	})
	w.out.WriteByte('}')
}

func (w *patchWriter) value(n node) {
	if w.budget--; w.budget < 0 {
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		w.object(n, false)
	case yaml.SequenceNode:
		w.out.WriteByte('[')
		n.items(func(i int, item node) {
			if i > 0 {
				w.out.WriteByte(',')
			}
			w.value(item)
		})
		w.out.WriteByte(']')
	default:
		w.scalar(n)
	}
}

func (w *patchWriter) scalar(n node) {
	switch n.Tag {
	case "!!null":
		w.out.WriteString("null")
	case "!!bool":
		truth, _ := n.truth()
		w.out.WriteString(strconv.FormatBool(truth))
	case "!!int", "!!float":
		w.number(n)
	default: // text, dates and whatever else is a plain word
		w.text(n.Value)
	}
}

// number keeps the digits where JSON has the same notation and converts the others (0x1f, 1_000, +1, .5).
func (w *patchWriter) number(n node) {
	if json.Valid([]byte(n.Value)) {
		w.out.WriteString(n.Value)
		return
	}
	plain := strings.ReplaceAll(n.Value, "_", "")
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		w.out.WriteString(strconv.FormatInt(i, 10))
		return
	}
	f, err := strconv.ParseFloat(plain, 64)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(f); err == nil {
			w.out.Write(text)
			return
		}
	}
	n.fail("JSON has no number %s", n.Value)
	w.out.WriteString("null")
}

func (w *patchWriter) text(s string) {
	enc := json.NewEncoder(&w.out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // text always encodes, into memory
	w.out.Truncate(w.out.Len() - 1)
}
