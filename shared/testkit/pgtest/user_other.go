//go:build !unix

package pgtest

import "os/exec"

func giveToServerUser(string) error { return nil }

func asServerUser(*exec.Cmd) {}
