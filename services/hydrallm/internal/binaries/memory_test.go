package binaries

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/processtest"
)

// initLine is what GODEBUG=inittrace=1 says of each package that does something before main.
var initLine = regexp.MustCompile(`(?m)^init (\S+) @.* clock, (\d+) bytes, \d+ allocs$`)

// what only few requests need is not built at each start. One package of a dependency can cost more than all of the gateway, so this counts what
// every package allocates before main.
func TestPackagesAllocateLittleAtTheStart(t *testing.T) {
	t.Parallel()
	const most, all = 2 << 20, 12 << 20
	cmd := exec.Command(processtest.AllInOne(t), "--help")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	sum := 0
	for _, m := range initLine.FindAllStringSubmatch(string(out), -1) {
		n, err := strconv.Atoi(m[2])
		require.NoError(t, err)
		require.LessOrEqual(t, n, most, m[1])
		sum += n
	}
	require.Positive(t, sum)
	require.LessOrEqual(t, sum, all)
}
