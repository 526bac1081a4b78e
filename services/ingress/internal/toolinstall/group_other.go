//go:build !unix

package toolinstall

import "os/exec"

// own leaves it to package exec to kill the program; there are no process groups here.
func own(*exec.Cmd) {}

func killAll(*exec.Cmd) {}
