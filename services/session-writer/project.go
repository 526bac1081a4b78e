package sessionwriter

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os/exec"
	"time"
)

const (
	gitLimit      = 5 * time.Second // for git to say where it is
	projectDigits = 12
)

// projectOf names the project of a directory: by a hash of the top level of its git repository, "" outside of one and without git.
func projectOf(ctx context.Context, dir string) string {
	ctx, cancel := context.WithTimeout(ctx, gitLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "rev-parse", "--show-toplevel")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	out, err := cmd.Output()
	top := bytes.ToValidUTF8(bytes.TrimRight(out, "\r\n"), []byte("\uFFFD"))
	if err != nil || len(top) == 0 {
		return ""
	}
	sum := sha256.Sum256(top)
	return hex.EncodeToString(sum[:])[:projectDigits]
}
