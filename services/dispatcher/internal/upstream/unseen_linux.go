package upstream

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unacknowledged says whether something that was sent has not been acknowledged by the system of the other side.
func unacknowledged(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	var outstanding int
	failed := raw.Control(func(fd uintptr) {
		outstanding, err = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ)
	})
	return failed == nil && err == nil && outstanding > 0
}
