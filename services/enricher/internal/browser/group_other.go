//go:build !unix

package browser

import (
	"errors"
	"os/exec"
)

var errMissing = errors.New("browsers can't be driven on this system")

func sandboxed() bool { return true }

func startGroup(*exec.Cmd) error { return errMissing }

func kill(int) {}

func killGroup(*exec.Cmd) {}
