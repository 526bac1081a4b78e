package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"hydrallm/shared/openai/rawjson"
)

// Patch is a set of changes to a request, compiled from one or more layers. Objects merge member by member at any depth; scalars and
// arrays are replaced, also an object by a scalar and a scalar by an object; null sets null. It is immutable.
type Patch struct{ ops []op }

// op is what a patch does to one member.
type op struct {
	name  string
	key   []byte // name as JSON
	value []byte // what the member becomes when it is absent or no object, and always when merge is nil
	merge *Patch // changes inside an object
}

// CompilePatch joins layers, lowest first, to one patch with the same effect. A layer is a JSON object, or empty. The layers are copied.
func CompilePatch(layers ...[]byte) (*Patch, error) {
	all := &Patch{}
	for i, layer := range layers {
		if len(bytes.TrimSpace(layer)) == 0 {
			continue
		}
		p, err := parsePatch(layer)
		if err != nil {
			return nil, fmt.Errorf("reading layer %d of a patch: %w", i+1, err)
		}
		all = join(all, p)
	}
	return all, nil
}

func parsePatch(layer []byte) (*Patch, error) {
	var compact bytes.Buffer
	if s := rawjson.Scan(layer); s.Kind() != '{' || !rawjson.Valid(layer) {
		return nil, errors.New("a patch must be a JSON object")
	}
	if err := json.Compact(&compact, layer); err != nil {
		return nil, err
	}
	return patchOf(compact.Bytes())
}

// patchOf reads a valid compact object.
func patchOf(object []byte) (*Patch, error) {
	p := &Patch{}
	for m := range rawjson.Members(object) {
		o := op{name: string(m.Name()), key: m.Key.Of(object), value: m.Value.Of(object)}
		if p.index([]byte(o.name)) >= 0 {
			return nil, fmt.Errorf("member %q is given twice", o.name)
		}
		if o.value[0] == '{' {
			var err error
			if o.merge, err = patchOf(o.value); err != nil {
				return nil, err
			}
		}
		p.ops = append(p.ops, o)
	}
	return p, nil
}

// join gives the patch that does what low and then high do.
func join(low, high *Patch) *Patch {
	all := &Patch{ops: append([]op(nil), low.ops...)}
	for _, h := range high.ops {
		i := all.index([]byte(h.name))
		if i < 0 {
			all.ops = append(all.ops, h)
			continue
		}
		l := &all.ops[i]
		switch {
		case h.merge == nil || l.value[0] != '{':
			l.value, l.merge = h.value, nil
		case l.merge == nil:
			l.value = h.merge.appendMerged(nil, l.value)
		default:
			l.value, l.merge = h.merge.appendMerged(nil, l.value), join(l.merge, h.merge)
		}
	}
	return all
}

// Empty says whether the patch changes nothing.
func (p *Patch) Empty() bool { return p == nil || len(p.ops) == 0 }

// Has says whether the patch changes the top-level member of this name.
func (p *Patch) Has(name string) bool { return p != nil && p.index([]byte(name)) >= 0 }

// appendMerged appends a copy of a valid object with the patch applied. The order of its members is kept, new ones follow in the order of
// the patch. Of a member that is there twice, both are patched, so that it does not matter which one a parser takes.
func (p *Patch) appendMerged(dst, object []byte) []byte {
	c := rawjson.Copy(dst, object)
	seen := make([]bool, len(p.ops))
	for m := range rawjson.Members(object) {
		c.Member(m.Key.Start, m.Value.End, true)
		if i := p.index(m.Name()); i >= 0 {
			seen[i] = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = p.ops[i].appendTo(*out, m.Value.Of(object))
		}
	}
	p.addUnseen(&c, seen)
	return c.End()
}

// index gives the op for a member, or -1.
func (p *Patch) index(name []byte) int {
	for i := range p.ops {
		if p.ops[i].name == string(name) {
			return i
		}
	}
	return -1
}

// appendTo appends what becomes of a member that has this value.
func (o *op) appendTo(dst, value []byte) []byte {
	if o.merge == nil || value[0] != '{' {
		return append(dst, o.value...)
	}
	return o.merge.appendMerged(dst, value)
}

// rivals are members of which a request has one: the one that the client sends keeps the default for the other away.
var rivals = map[string]string{"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}

// given notes in seen that a request has a member, and gives the default for it, or nil.
func (p *Patch) given(name []byte, seen []bool) *op {
	if rival := rivals[string(name)]; rival != "" {
		if i := p.index([]byte(rival)); i >= 0 {
			seen[i] = true
		}
	}
	i := p.index(name)
	if i < 0 {
		return nil
	}
	seen[i] = true
	return &p.ops[i]
}

// appendFilled appends a value that the client gave: an object with the members of the default that it lacks, at any depth, others as they are.
func (o *op) appendFilled(dst, value []byte) []byte {
	if o.merge == nil || value[0] != '{' {
		return append(dst, value...)
	}
	c := rawjson.Copy(dst, value)
	seen := make([]bool, len(o.merge.ops))
	for m := range rawjson.Members(value) {
		c.Member(m.Key.Start, m.Value.End, true)
		if i := o.merge.index(m.Name()); i >= 0 {
			seen[i] = true
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = o.merge.ops[i].appendFilled(*out, m.Value.Of(value))
		}
	}
	o.merge.addUnseen(&c, seen)
	return c.End()
}

// addUnseen adds the members that the object did not have.
func (p *Patch) addUnseen(c *rawjson.Copier, seen []bool) {
	for i := range p.ops {
		if !seen[i] {
			c.Add(p.ops[i].key, colon, p.ops[i].value)
		}
	}
}

var colon = []byte(":")
