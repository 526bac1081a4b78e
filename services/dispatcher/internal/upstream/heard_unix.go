//go:build unix

package upstream

import (
	"errors"
	"net"
	"syscall"
	"time"
)

// canTell says that heard works on this system.
const canTell = true

// heard says whether something came over a connection that nobody waits at: its end, or what nobody has asked for. It does not block.
func heard(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return heardByReading(conn)
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return true
	}
	silent := false
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR)
	})
	return err != nil || !silent
}

// heardByReading is heard for connections inside the process, which tell of their end before they look at the time.
func heardByReading(conn net.Conn) bool {
	if conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		return true
	}
	var b [1]byte
	n, err := conn.Read(b[:])
	timeout, ok := errors.AsType[net.Error](err)
	return n > 0 || !ok || !timeout.Timeout() || conn.SetReadDeadline(time.Time{}) != nil
}
