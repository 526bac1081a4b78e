package answer

import (
	"bytes"
	"crypto/rand"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// Head is what all chunks of an answer have in common, as raw values; nil while the provider has stated none.
type Head struct {
	ID, Created, Model []byte
}

// Learn takes what the first chunks state. It copies what it keeps.
func (h *Head) Learn(c *Chunk) {
	if h.ID == nil {
		h.ID = stated(c.ID, '"')
	}
	if h.Created == nil {
		h.Created = stated(c.Created, '1')
	}
	if h.Model == nil {
		h.Model = stated(c.Model, '"')
	}
}

// stated copies a raw value if it is of the kind: a string that is not empty, or a number.
func stated(raw []byte, kind byte) []byte {
	if len(raw) == 0 || (raw[0] == '"') != (kind == '"') || string(raw) == `""` {
		return nil
	}
	if kind == '1' && (raw[0] < '0' || raw[0] > '9') {
		return nil
	}
	return bytes.Clone(raw)
}

// Complete fills in what the provider left out. A model that is not "" takes the place of the provider's.
func (h *Head) Complete(model string) {
	if h.ID == nil {
		h.ID = rawjson.AppendString(nil, "chatcmpl-"+strings.ToLower(rand.Text()))
	}
	if h.Created == nil {
		h.Created = strconv.AppendInt(nil, time.Now().Unix(), 10)
	}
	if model != "" || h.Model == nil {
		h.Model = rawjson.AppendString(nil, model)
	}
}
