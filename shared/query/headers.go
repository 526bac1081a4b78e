package query

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Headers are those of an upstream's answer that help to find out what happened, by their canonical names.
type Headers map[string]string

// ErrBadHeaders says that a stored value holds no headers.
var ErrBadHeaders = errors.New("not headers")

// Scan implements sql.Scanner for what contract.AppendHeaders writes. Nothing stored is no headers.
func (h *Headers) Scan(value any) error {
	var text []byte
	switch v := value.(type) {
	case string:
		text = []byte(v)
	case []byte:
		text = v
	default:
		return fmt.Errorf("%w: %T", ErrBadHeaders, value)
	}
	*h = nil
	if len(text) == 0 {
		return nil
	}
	var pairs [][2]string
	if err := json.Unmarshal(text, &pairs); err != nil {
		return fmt.Errorf("%w: %w", ErrBadHeaders, err)
	}
	*h = make(Headers, len(pairs))
	for _, pair := range pairs {
		(*h)[pair[0]] = pair[1]
	}
	return nil
}
