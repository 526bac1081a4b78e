package process

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// only mappings of files that nobody can have written are taken out.
func TestCleanFiles(t *testing.T) {
	t.Parallel()
	const smaps = `00400000-01b2c000 r-xp 00000000 fe:00 1234                               /usr/local/bin/hydrallm
Size:              23728 kB
Anonymous:             0 kB
AnonHugePages:         0 kB
VmFlags: rd ex mr mw me
01b2c000-03400000 r--p 0172c000 fe:00 1234                               /usr/local/bin/hydra llm (deleted)
Anonymous:             0 kB
03400000-03500000 r--p 03000000 fe:00 1234                               /usr/local/bin/hydrallm
Anonymous:             4 kB
03500000-03600000 rw-p 03100000 fe:00 1234                               /usr/local/bin/hydrallm
Anonymous:             0 kB
03600000-03700000 r--s 03200000 fe:00 99                                 /data/hydrallm.db-shm
Anonymous:             0 kB
c000000000-c004000000 r--p 00000000 00:00 0
Anonymous:             0 kB
7ffd0000-7ffd1000 r-xp 00000000 00:00 0                                  [vdso]
Anonymous:             0 kB
zz-03700000 r-xp 00000000 fe:00 1234                                     /usr/local/bin/hydrallm
Anonymous:             0 kB
03800000-03900000 r-xp 00000000 fe:00 1234                               /usr/local/bin/hydrallm
`
	require.Equal(t, []mapping{{0x400000, 0x1b2c000}, {0x1b2c000, 0x3400000}}, cleanFiles([]byte(smaps)))
	require.Empty(t, cleanFiles([]byte("Anonymous: 0 kB\n- r-xp 0 0 0 /x\n\n")))
}

// the program is among them, and goes on as before.
func TestUnmapFiles(t *testing.T) {
	t.Parallel()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil || !bytes.Contains(smaps, []byte("Anonymous:")) {
		t.Skip("the system does not tell of mappings:", err)
	}
	here, found := reflect.ValueOf(unmapFiles).Pointer(), false
	for _, m := range cleanFiles(smaps) {
		found = found || m.begin <= here && here < m.end
	}
	require.True(t, found)
	unmapFiles()
	require.Len(t, growths(), 3)
}

func growths() []int { return []int{growth(0, 0), growth(1<<30, 0), growth(0, 1<<30)} }
