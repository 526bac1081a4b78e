//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// PostgreSQL refuses to run as root; then the system's postgres user runs it.
const serverUser = "postgres"

func giveToServerUser(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	cred, err := credential()
	if err != nil {
		return err
	}
	return os.Chown(dir, int(cred.Uid), int(cred.Gid))
}

func asServerUser(cmd *exec.Cmd) {
	if os.Geteuid() != 0 {
		return
	}
	if cred, err := credential(); err == nil { // otherwise giveToServerUser has failed before
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	}
}

func credential() (*syscall.Credential, error) {
	u, err := user.Lookup(serverUser)
	if err != nil {
		return nil, fmt.Errorf("root needs a user to run PostgreSQL: %w", err)
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		return nil, fmt.Errorf("user %s has no numeric ids", serverUser)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}
