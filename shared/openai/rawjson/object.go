package rawjson

import "bytes"

// Object is a JSON object that is being written. The zero value is empty. Names are plain ASCII without characters that need an escape.
type Object []byte

// Set adds a member with a raw value, unless that is nil.
func (o Object) Set(name string, raw []byte) Object {
	if raw == nil {
		return o
	}
	return append(o.name(name), raw...)
}

// Text adds a member with a string.
func (o Object) Text(name, text string) Object { return AppendString(o.name(name), text) }

func (o Object) name(name string) Object {
	if len(o) == 0 {
		o = append(o, '{')
	} else {
		o = append(o, ',')
	}
	return append(append(append(o, '"'), name...), `":`...)
}

// End gives the object.
func (o Object) End() []byte {
	if len(o) == 0 {
		return []byte("{}")
	}
	return append(o, '}')
}

// Array joins raw values to an array.
func Array(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}

// Given gives the members of a valid JSON object that are not null; of two with one name, the last. What is no object has none.
func Given(object []byte) map[string][]byte {
	members := map[string][]byte{}
	for m := range Members(object) {
		if value := m.Value.Of(object); value[0] != 'n' {
			members[string(m.Name())] = value
		} else {
			delete(members, string(m.Name()))
		}
	}
	return members
}
