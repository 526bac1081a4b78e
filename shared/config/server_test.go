package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A request can't be taken in no time: 0 would be the default in disguise.
func TestQueueTimeoutIsAboveZero(t *testing.T) {
	t.Parallel()
	for _, value := range []string{"0s", "-1s"} {
		_, _, err := parse(nil, "server: {queue_timeout: "+value+"}")
		require.ErrorContains(t, err, "server.queue_timeout")
	}
}
