//go:build unix

package browser

import (
	"os"
	"os/exec"
	"syscall"
)

// sandboxed says whether Chromium runs its pages in its sandbox. It refuses to as root.
func sandboxed() bool { return os.Geteuid() != 0 }

// startGroup starts a program as the leader of a process group of its own.
func startGroup(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

// kill kills one process of a group.
func kill(pid int) { _ = syscall.Kill(pid, syscall.SIGKILL) }

// killGroup kills a program with all that it started. It is called before the program is waited for, so that its number is no other's.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
