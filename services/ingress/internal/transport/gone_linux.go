package transport

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Gone says whether the client has closed its side of the connection. It does not block, and does not take away what the client has sent.
func (c *Conn) Gone() bool {
	gone := false
	err := c.raw.Control(func(fd uintptr) {
		if c.secure != nil {
			gone = hungUp(fd)
			return
		}
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

// hungUp says whether the other side has closed a socket, whatever is there to be read: who speaks TLS says that it leaves before it does.
func hungUp(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&(unix.POLLRDHUP|unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0
}
