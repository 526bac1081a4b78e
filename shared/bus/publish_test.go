package bus

import (
	"errors"
	"fmt"
	"testing"

	natsserver "github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// what a server says while it changes is no answer to whoever publishes.
func TestPassing(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want bool
	}{
		"no leader":                         {&jetstream.APIError{Code: 503, ErrorCode: 10008}, true},
		"not the leader any more":           {&jetstream.APIError{Code: 500, ErrorCode: 10009}, true},
		"an earlier try is not through yet": {&jetstream.APIError{Code: 409, ErrorCode: 10158}, true},
		"no stream":                         {jetstream.ErrNoStreamResponse, true},
		"connection lost":                   {nats.ErrDisconnected, true},
		"full":                              {&jetstream.APIError{Code: 503, ErrorCode: jsErrStreamFull, Description: natsserver.ErrMaxBytes.Error()}, false},
		"about to stop":                     {&jetstream.APIError{Code: 503, ErrorCode: jsErrStreamFull, Description: natsserver.ErrStoreClosed.Error()}, true},
		"too large":                         {&jetstream.APIError{Code: 400, ErrorCode: 10054}, false},
		"anything else":                     {errors.New("broken"), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, passing(fmt.Errorf("publishing: %w", tt.err)))
		})
	}
}
