package sessionheader

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/tidwall/gjson"
)

// root identifies a dialogue by its first message.
type root [sha256.Size]byte

// idBytes is the length of an id before it becomes hex: 128 bits.
const idBytes = 16

// dialogue is the history of one request.
type dialogue struct {
	messages gjson.Result
	first    int // index of the message that the chain starts at
	root     root
}

// readDialogue finds the first message of the user, or the first of all when the user has said nothing. It is not ok when
// there are no messages.
func readDialogue(messages []byte) (d dialogue, ok bool) {
	d.messages = gjson.ParseBytes(messages)
	if !d.messages.IsArray() {
		return d, false
	}
	var start gjson.Result
	i := 0
	d.messages.ForEach(func(_, m gjson.Result) bool {
		user := m.Get("role").Str == "user"
		if user || !ok {
			start, d.first, ok = m, i, true
		}
		i++
		return !user
	})
	if ok {
		d.root = sha256.Sum256(appendMessage(nil, start))
	}
	return d, ok
}

// id is the id of a conversation that this request begins: the hash of its whole history.
func (d dialogue) id() string {
	h := d.root
	var buf []byte
	i := 0
	d.messages.ForEach(func(_, m gjson.Result) bool {
		if i > d.first {
			buf = appendMessage(append(buf[:0], h[:]...), m)
			h = sha256.Sum256(buf)
		}
		i++
		return true
	})
	return hex.EncodeToString(h[:idBytes])
}
