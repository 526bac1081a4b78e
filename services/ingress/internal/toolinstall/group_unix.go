//go:build unix

package toolinstall

import (
	"os/exec"
	"syscall"
)

// own gives the program a process group, and lets the end of its context be told to the whole group.
func own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// killAll ends what is left of the group of a program that has ended.
func killAll(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // most often there is nothing left
}
