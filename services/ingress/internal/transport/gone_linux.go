package transport

import (
	"errors"
	"syscall"
)

// Gone says whether the client has closed its side of the connection. It does not block, and does not take away what the client has sent.
func (c *Conn) Gone() bool {
	gone := false
	err := c.raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == nil:
			gone = n == 0
		case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		default:
			gone = true
		}
	})
	return gone || err != nil
}
