package rawjson

import "iter"

// Member is one member of an object, by position in the text that was given to Members.
type Member struct {
	Key   Span // with quotes
	Value Span
	name  []byte
}

// Name is the key with escapes resolved. It must not be changed.
func (m *Member) Name() []byte { return m.name }

// Members iterates over the members of a valid JSON object. Anything that is no object has no members.
func Members(object []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		s := Scan(object)
		if !s.Enter('{') {
			return
		}
		for s.Member() {
			m := Member{Key: s.KeySpan(), name: s.Key()}
			if m.Value = s.Skip(); m.Value.IsZero() || !yield(m) {
				return
			}
		}
	}
}

// Elements iterates over the elements of a valid JSON array. Anything that is no array has no elements.
func Elements(array []byte) iter.Seq[Span] {
	return func(yield func(Span) bool) {
		s := Scan(array)
		if !s.Enter('[') {
			return
		}
		for s.Element() {
			if e := s.Skip(); e.IsZero() || !yield(e) {
				return
			}
		}
	}
}

// Get gives the value of the last member with this name in a valid JSON object, or nil: the last one is what other parsers take.
func Get(object []byte, name string) []byte {
	var value []byte
	for m := range Members(object) {
		if string(m.name) == name {
			value = m.Value.Of(object)
		}
	}
	return value
}

// AppendSet appends a copy of a valid JSON object in which every member called name has the given raw value. If there is none, the member
// is added at the end. Everything else stays byte for byte.
func AppendSet(dst, object []byte, name string, value []byte) []byte {
	c, found := Copy(dst, object), false
	for m := range Members(object) {
		c.Member(m.Key.Start, m.Value.End, true)
		if string(m.name) == name {
			out := c.Edit(m.Value.Start, m.Value.End)
			*out = append(*out, value...)
			found = true
		}
	}
	if !found {
		c.Add(AppendString(nil, name), colon, value)
	}
	return c.End()
}

var colon = []byte(":")

// AppendDelete appends a copy of a valid JSON object without the members called name. Everything else stays byte for byte.
func AppendDelete(dst, object []byte, name string) []byte {
	c := Copy(dst, object)
	for m := range Members(object) {
		c.Member(m.Key.Start, m.Value.End, string(m.name) != name)
	}
	return c.End()
}
