package movein

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// errNoJSON is for a text that is not JSON.
var errNoJSON = errors.New("is no JSON")

// json makes the tree of a JSON text. Unlike encoding/json it knows the lines, and takes no key twice.
func (p *parser) json(data []byte) (*value, error) {
	d := &jsonReader{parser: p, data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	d.dec.UseNumber()
	v, err := d.value("", 1)
	if err != nil {
		return nil, err
	}
	if _, err := d.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, d.fail("something follows the JSON text")
	}
	return v, nil
}

type jsonReader struct {
	*parser

	data []byte
	dec  *json.Decoder
	seen int // bytes of which the lines are counted
	line int // of them
}

// at is the line of the token that was read last.
func (d *jsonReader) at() int {
	end := min(int(d.dec.InputOffset()), len(d.data))
	d.line += bytes.Count(d.data[d.seen:end], []byte("\n"))
	d.seen = end
	return d.line + 1
}

func (d *jsonReader) fail(problem string) error {
	return fmt.Errorf("%s:%d: %w: %s", d.file, d.at(), errNoJSON, problem)
}

func (d *jsonReader) token() (json.Token, error) {
	t, err := d.dec.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, d.fail("it ends in the middle")
	case err != nil: // the library's error may quote the text
		return nil, d.fail("something is wrong behind this line's beginning, or before it")
	}
	return t, nil
}

func (d *jsonReader) value(path string, depth int) (*value, error) {
	t, err := d.token()
	if err != nil {
		return nil, err
	}
	line := d.at()
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return d.object(path, line, depth)
		}
		return d.array(path, line, depth)
	case string:
		return d.add(text, t, path, line, depth)
	case json.Number:
		return d.add(number, t.String(), path, line, depth)
	case bool:
		return d.add(boolean, strconv.FormatBool(t), path, line, depth)
	default:
		return d.add(nothing, "", path, line, depth)
	}
}

func (d *jsonReader) object(path string, line, depth int) (*value, error) {
	v, err := d.add(mapping, "", path, line, depth)
	if err != nil {
		return nil, err
	}
	v.fields = map[string]*value{}
	for d.dec.More() {
		t, err := d.token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, d.fail("a key is not text")
		}
		if first := v.fields[key]; first != nil {
			return nil, d.broken(d.at(), "gives %s twice (first on line %d)", under(path, key), first.line)
		}
		child, err := d.value(under(path, key), depth+1)
		if err != nil {
			return nil, err
		}
		v.put(key, child)
	}
	_, err = d.token()
	return v, err
}

func (d *jsonReader) array(path string, line, depth int) (*value, error) {
	v, err := d.add(list, "", path, line, depth)
	if err != nil {
		return nil, err
	}
	for i := 0; d.dec.More(); i++ {
		child, err := d.value(index(path, i), depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, child)
	}
	_, err = d.token()
	return v, err
}
