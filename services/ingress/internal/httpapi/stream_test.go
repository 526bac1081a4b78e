package httpapi

import (
	"bytes"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/ingress/internal/pending"
	"hydrallm/shared/bus"
)

// checkedWriter is a client that looks at what is kept for it with each piece that it takes.
type checkedWriter struct {
	bytes.Buffer

	check func(taken int)
}

func (w *checkedWriter) Write(p []byte) (int, error) {
	w.check(w.Len())
	return w.Buffer.Write(p)
}

// SES-06: what the client has taken is kept no longer, because the worker sends more in the place of it.
func TestTakenPartsAreLetGo(t *testing.T) {
	t.Parallel()
	const size = maxPiece
	parts := func() [][]byte {
		var list [][]byte
		for n := 0; n+size < bus.CreditStep; n += size {
			list = append(list, bytes.Repeat([]byte{byte('a' + n/size)}, size))
		}
		return list
	}
	client, conn := net.Pipe()
	t.Cleanup(func() {
		_ = client.Close() // it has no error
		_ = conn.Close()   // nor has this
	})
	ways := map[string]func(w *checkedWriter, parts [][]byte) error{
		"stream": func(w *checkedWriter, parts [][]byte) error {
			s := &stream{pend: &pending.Request{}, writer: deadlineWriter{conn: conn}}
			return s.writeAll(w, parts)
		},
		"whole body": func(w *checkedWriter, parts [][]byte) error {
			_, err := (&deadlineBody{parts: parts, writer: deadlineWriter{conn: conn}}).WriteTo(w)
			return err
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := parts()
			require.Greater(t, len(list), 2)
			kept := len(list)
			w := &checkedWriter{check: func(taken int) {
				for i := range taken / size {
					require.Nil(t, list[i])
				}
				kept--
			}}
			require.NoError(t, way(w, list))
			require.Zero(t, kept)
			require.Equal(t, bytes.Join(parts(), nil), w.Bytes())
		})
	}
}

// The end of an event is seen although what was written before is not kept.
func TestBoundary(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{"data: x\n\n": true, "data: x\r\n\r\n": true, "data: x\n": false, "x": false, "\n\n": true}
	client, conn := net.Pipe()
	defer client.Close() //nolint:errcheck // it has no error
	defer conn.Close()   //nolint:errcheck // it has no error
	for text, want := range tests {
		s := &stream{pend: &pending.Request{}, writer: deadlineWriter{conn: conn}}
		require.True(t, s.atBoundary())
		require.NoError(t, s.writeAll(&bytes.Buffer{}, [][]byte{[]byte(text)}))
		require.Equal(t, want, s.atBoundary(), text)
	}
}
