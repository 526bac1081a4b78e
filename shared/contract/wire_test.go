package contract_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/contract"
)

// Each file of testdata/wire has messages of one kind, a line each, as a version of the program has sent them. Lines come, and none is changed or goes: they
// stand for services of the version before in a cluster that is being upgraded, and for what is on disk. Bytes that are no line are quoted as in Go.
const wire = "testdata/wire"

// again decodes a message and encodes what was read of it.
type again func(data []byte) (value any, encoded []byte, err error)

var wireKinds = map[string]again{
	"request": func(data []byte) (any, []byte, error) {
		var header map[string][]string
		if err := json.Unmarshal(data, &header); err != nil {
			return nil, nil, err
		}
		r, err := contract.ParseRequest(header)
		if err != nil {
			return nil, nil, err
		}
		encoded, err := json.Marshal(r.Header())
		return *r, encoded, err
	},
	"frames": func(data []byte) (any, []byte, error) {
		var list []contract.Frame
		var encoded []byte
		for f, err := range contract.Frames(data) {
			if err != nil {
				return nil, nil, err
			}
			list, encoded = append(list, f), contract.AppendFrame(encoded, f)
		}
		return list, encoded, nil
	},
	"head": func(data []byte) (any, []byte, error) {
		h, err := contract.ParseHead(data)
		return h, h.AppendJSON(nil), err
	},
	"end": func(data []byte) (any, []byte, error) {
		e, err := contract.ParseEnd(data)
		return e, e.AppendJSON(nil), err
	},
	"signs": func(data []byte) (any, []byte, error) {
		worker, signs, err := contract.Signs(data)
		if err != nil {
			return nil, nil, err
		}
		var list []contract.Sign
		for s, err := range signs {
			if err != nil {
				return nil, nil, err
			}
			list = append(list, s)
		}
		return list, contract.AppendSigns(nil, worker, list...), nil
	},
	"heard": func(data []byte) (any, []byte, error) {
		list := contract.ParseHeard(data)
		return list, contract.AppendHeard(nil, list...), nil
	},
	"usage": func(data []byte) (any, []byte, error) {
		u, err := contract.ParseUsage(data)
		return u, u.AppendJSON(nil), err
	},
	"log": func(data []byte) (any, []byte, error) {
		l, err := contract.ParseLog(data)
		return l, l.AppendJSON(nil), err
	},
	"response": func(data []byte) (any, []byte, error) {
		s, err := contract.ParseStoredResponse(data)
		if err != nil {
			return nil, nil, err
		}
		encoded, err := s.Encode()
		return s, encoded, err
	},
	"turn":     decoded[contract.Turn],
	"web":      decoded[contract.WebRecord],
	"question": decoded[contract.FenceQuestion],
	"answer":   decoded[contract.FenceAnswer],
	"state":    decoded[contract.DispatcherState],
}

// decoded is for messages of encoding/json.
func decoded[T any](data []byte) (any, []byte, error) {
	var value T
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, nil, err
	}
	encoded, err := json.Marshal(value)
	return value, encoded, err
}

// what another version has sent is read whole: all of it is there when it is written again, in the same bytes, so that the other version would read
// it, too. Each member that a message can have is in one of the lines.
func TestWireIsKept(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(wire + "/*.txt")
	require.NoError(t, err)
	require.Len(t, files, len(wireKinds))
	for kind, read := range wireKinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(wire, kind+".txt"))
			require.NoError(t, err)
			missing := map[string]bool{}
			for line := range strings.Lines(string(text)) {
				line = strings.TrimSuffix(line, "\n")
				if strings.HasPrefix(line, `"`) {
					line, err = strconv.Unquote(line)
					require.NoError(t, err)
				}
				value, encoded, err := read([]byte(line))
				require.NoError(t, err, line)
				require.Equal(t, line, string(encoded))
				note(reflect.ValueOf(value), kind, missing)
			}
			for member, lacks := range missing {
				require.False(t, lacks, "no message in %s/%s.txt has %s: add a line with one that does", wire, kind, member)
			}
		})
	}
}

// note tells which members of a value are there. One that was there once is not missing.
func note(v reflect.Value, path string, missing map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			note(v.Elem(), path, missing)
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				note(v.Index(i), path+"[]", missing)
			}
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			note(v.MapIndex(key), path+"{}", missing)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			if !field.IsExported() || field.Tag.Get("json") == "-" {
				continue
			}
			name := path + "." + field.Name
			if lacks, known := missing[name]; lacks || !known {
				missing[name] = v.Field(i).IsZero()
			}
			note(v.Field(i), name, missing)
		}
	default:
	}
}
