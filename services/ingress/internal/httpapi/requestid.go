package httpapi

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"time"
)

// ids are written in an alphabet that keeps their order and is a single token of a NATS subject.
var idEncoding = base32.NewEncoding("0123456789abcdefghijklmnopqrstuv").WithPadding(base32.NoPadding)

// newRequestID makes an id that nobody can guess and that sorts by time: 48 bits of milliseconds and 80 random bits.
func newRequestID(now time.Time) string {
	var raw [18]byte
	var text [26]byte
	binary.BigEndian.PutUint64(raw[:8], uint64(now.UnixMilli())<<16)
	_, _ = rand.Read(raw[6:16]) // it never fails
	idEncoding.Encode(text[:], raw[:16])
	return string(text[:])
}

const maxRequestID = 128

// saneRequestID says whether an id of a client may be shown in an answer.
func saneRequestID(id []byte) bool {
	if len(id) == 0 || len(id) > maxRequestID {
		return false
	}
	for _, c := range id {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '.', c == ':', c == '/', c == '+', c == '=':
		default:
			return false
		}
	}
	return true
}
