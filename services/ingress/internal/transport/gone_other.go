//go:build !linux

package transport

// Gone is always false: on this system only a failed write tells that a client has left.
func (c *Conn) Gone() bool { return false }
