// Package startstoptest holds a service to the contract of starting and stopping.
package startstoptest

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/shared/testkit/await"
)

// Service is what is started and stopped.
type Service interface {
	Start(ctx context.Context) error
	Stop(ctx context.Context) error
}

// Limit bounds a stop. It is far more than one takes on a machine with too much to do.
const Limit = await.Limit

const (
	sides  = 10 // goroutines that start and stop at the same time
	rounds = 5  // starts or stops by each of them
)

// Stopper is what is stopped, such as a Service or a consumer.
type Stopper interface {
	Stop(ctx context.Context) error
}

// Stop stops something with the patience of Limit, and fails the test if that fails.
func Stop(tb testing.TB, s Stopper) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), Limit)
	defer cancel()
	require.NoError(tb, s.Stop(ctx))
}

// Stress checks that a service can be stopped before it was started, started twice, stopped twice and started again, that a start which fails
// leaves nothing behind, and that all of this holds when ten goroutines start and stop at the same time. works is called whenever the service has
// started and nobody stops it; it may be nil. The service is stopped at the end.
//
// Goroutines that outlive the service are for the leak test of the package to find.
func Stress(t *testing.T, s Service, works func()) {
	t.Helper()
	if works == nil {
		works = func() {}
	}
	Stop(t, s)
	for range 2 {
		require.NoError(t, s.Start(t.Context()))
		require.NoError(t, s.Start(t.Context()), "a service that runs is started already")
		works()
		Stop(t, s)
		Stop(t, s)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, s.Start(over), "a start whose time is over before it begins")
	Stop(t, s)

	var wg sync.WaitGroup
	for side := range sides {
		wg.Go(func() {
			for round := range rounds {
				if (side+round)%2 == 0 {
					if err := s.Start(t.Context()); err != nil {
						t.Errorf("starting from many sides: %v", err)
					}
				} else if err := s.Stop(t.Context()); err != nil {
					t.Errorf("stopping from many sides: %v", err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, s.Start(t.Context()))
	works()
	Stop(t, s)
}
