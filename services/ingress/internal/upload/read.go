package upload

import (
	"errors"
	"io"
	"sync"
)

const (
	firstRoom = 8 << 10
	trusted   = 64 << 10 // room that is made for an announced body before any of it has come
	maxPooled = 1 << 20
)

var pool = sync.Pool{New: func() any { return new(make([]byte, 0, firstRoom)) }}

// Release takes back the body that Read gave. Nothing may refer to it afterwards.
func Release(body []byte) {
	if cap(body) == 0 || cap(body) > maxPooled {
		return
	}
	body = body[:0]
	pool.Put(&body)
}

// readAll reads src to its end. It holds at most limit+1 bytes of it.
func readAll(src io.Reader, size, limit int) ([]byte, error) {
	buf := room(size)
	for {
		n, err := src.Read(buf[len(buf):min(cap(buf), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case len(buf) > limit:
			return nil, tooLarge(limit)
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		}
		if len(buf) == cap(buf) {
			buf = grow(buf, size, limit)
		}
	}
}

// room gives a buffer that holds an announced body of a modest size and a byte more, which is read to see the end.
func room(size int) []byte {
	buf := *pool.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	if want := min(size+1, trusted); want > cap(buf) {
		return make([]byte, 0, want)
	}
	return buf
}

// grow doubles the room, but not beyond what can still come.
func grow(buf []byte, size, limit int) []byte {
	most := limit + 1
	if len(buf) <= size {
		most = min(most, size+1)
	}
	bigger := make([]byte, len(buf), min(2*cap(buf), most))
	copy(bigger, buf)
	return bigger
}
