package cli

import (
	"errors"
	"strconv"
)

// port is a TCP port from the command line.
type port int

var errPort = errors.New("must be a number from 1 to 65535")

// UnmarshalText is used by the command-line parser.
func (p *port) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 16)
	if err != nil || n == 0 {
		return errPort
	}
	*p = port(n)
	return nil
}
