package natsrights_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/natsrights"
)

const file = "../../../../deploy/nats/permissions.conf"

var update = flag.Bool("update", false, "write the permissions of deploy/nats anew")

// the file that operators use says what the code needs.
func TestFileIsUpToDate(t *testing.T) {
	t.Parallel()
	want := natsrights.Conf()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "run go test ./services/hydrallm/internal/natsrights -update")
}
