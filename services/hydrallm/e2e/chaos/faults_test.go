//go:build e2e

package chaos

import "testing"

// kill gives a fault: one process of a service is killed, and replaced later.
func kill(service string) func(*testing.T, stack) func() {
	return func(t *testing.T, s stack) func() {
		t.Helper()
		p := s.first(service)
		p.kill(t)
		return func() { p.start(t) }
	}
}

// stall gives a fault: one process of a service stops, and goes on later.
func stall(service string) func(*testing.T, stack) func() {
	return func(t *testing.T, s stack) func() {
		t.Helper()
		p := s.first(service)
		p.pause(t)
		return func() { p.resume(t) }
	}
}

// nothing is the scenario to compare the others with.
func nothing(*testing.T, stack) func() { return func() {} }

// restart replaces every worker, one after the other, as an upgrade does.
func restart(t *testing.T, s stack) func() {
	t.Helper()
	s.restartWorkers(t)
	return func() {}
}

// killNode kills the NATS server that leads the stream of requests.
func killNode(t *testing.T, s stack) func() {
	t.Helper()
	n := s.leader(t)
	n.kill(t)
	return func() { n.start(t) }
}

func stallNode(t *testing.T, s stack) func() {
	t.Helper()
	n := s.leader(t)
	n.pause(t)
	return func() { n.resume(t) }
}

func stopDatabase(t *testing.T, s stack) func() {
	t.Helper()
	return s.killDatabase(t)
}

// pull is a cable that is pulled: nothing passes, and nobody is told.
func pull(t *testing.T, s stack) func() {
	t.Helper()
	return s.pull(t)
}

// sever breaks all connections between a dispatcher and NATS, and lets nothing pass for a while.
func sever(t *testing.T, s stack) func() {
	t.Helper()
	join := s.pull(t)
	for _, l := range s.(*processes).links {
		l.Cut()
	}
	return join
}
