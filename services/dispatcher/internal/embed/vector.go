package embed

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"hydrallm/shared/openai/rawjson"
)

// maxDimensions bounds one vector. No model is known to have a quarter of that.
const maxDimensions = 1 << 16

// format is how the client wants vectors.
type format struct{ base64 bool }

// fits says that a vector has the format already. Base64 without its padding, which not every client takes, does not.
func (f format) fits(vector []byte) bool {
	if !f.base64 {
		return vector[0] == '['
	}
	return vector[0] == '"' && len(vector)%4 == 2 && bytes.IndexByte(vector, '\\') < 0
}

// vectors reads and writes vectors with buffers that are used again.
type vectors struct {
	floats []byte // 32 bits each, little endian
	text   []byte
}

// append writes a vector in the wanted format.
func (v *vectors) append(dst, vector []byte, f format) ([]byte, error) {
	if len(vector) > 0 && f.fits(vector) {
		return append(dst, vector...), v.check(vector)
	}
	if err := v.read(vector); err != nil {
		return nil, err
	}
	if f.base64 {
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), v.floats), '"'), nil
	}
	for i := 0; i < len(v.floats); i += 4 {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		dst = strconv.AppendFloat(append(dst, separator), v.at(i), 'g', -1, 32)
	}
	return append(dst, ']'), nil
}

// check says whether a vector can be used as it is.
func (v *vectors) check(vector []byte) error {
	if vector[0] != '[' {
		return v.read(vector)
	}
	n := 0
	for span := range rawjson.Elements(vector) {
		n++
		if text := span.Of(vector); !isNumber(text) || !finite(text) {
			return unusable("a vector holds something else than numbers")
		}
	}
	return checkDimensions(n)
}

// read takes a vector of either format into v.floats.
func (v *vectors) read(vector []byte) error {
	v.floats = v.floats[:0]
	switch {
	case len(vector) == 0:
	case vector[0] == '[':
		for span := range rawjson.Elements(vector) {
			text := span.Of(vector)
			f, err := strconv.ParseFloat(string(text), 32)
			if !isNumber(text) || err != nil {
				return unusable("a vector holds something else than numbers")
			}
			v.floats = binary.LittleEndian.AppendUint32(v.floats, math.Float32bits(float32(f)))
			if len(v.floats) > 4*maxDimensions {
				break
			}
		}
	case vector[0] == '"':
		v.text = rawjson.AppendText(v.text[:0], vector[1:len(vector)-1])
		var err error
		v.floats, err = base64.RawStdEncoding.AppendDecode(v.floats, bytes.TrimRight(v.text, "="))
		if err != nil || len(v.floats)%4 != 0 {
			return unusable("a vector is neither numbers nor base64")
		}
		for i := 0; i < len(v.floats); i += 4 {
			if f := v.at(i); math.IsNaN(f) || math.IsInf(f, 0) {
				return unusable("a vector holds something else than numbers")
			}
		}
	}
	return checkDimensions(len(v.floats) / 4)
}

// at gives the number at an offset in bytes.
func (v *vectors) at(i int) float64 {
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(v.floats[i:])))
}

func checkDimensions(n int) error {
	switch {
	case n == 0:
		return unusable("a vector is empty")
	case n > maxDimensions:
		return unusable("a vector has more than %d dimensions", maxDimensions)
	}
	return nil
}

func isNumber(text []byte) bool { return text[0] == '-' || '0' <= text[0] && text[0] <= '9' }

// finite says whether a number fits into 32 bits. Without an exponent, short ones do.
func finite(text []byte) bool {
	const short = 38 // digits of the largest number
	if len(text) <= short && bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0 {
		return true
	}
	_, err := strconv.ParseFloat(string(text), 32)
	return err == nil
}
