//go:build e2e

package chaos

import (
	"syscall"
	"testing"
)

// kill gives a fault: one process of a service is killed, and replaced later.
func kill(service string) func(*testing.T, *distributed) func() {
	return func(t *testing.T, x *distributed) func() {
		t.Helper()
		m := x.all(service)[0]
		m.End(t, syscall.SIGKILL)
		return func() {
			x.launch(m)
			m.AwaitReady(t, m.health)
		}
	}
}

// stall gives a fault: one process of a service stops, and goes on later.
func stall(service string) func(*testing.T, *distributed) func() {
	return func(t *testing.T, x *distributed) func() {
		t.Helper()
		m := x.all(service)[0]
		m.Signal(t, syscall.SIGSTOP)
		return func() { m.Signal(t, syscall.SIGCONT) }
	}
}

// nothing is the scenario to compare the others with.
func nothing(*testing.T, *distributed) func() { return func() {} }

// restart replaces every worker, one after the other, as an upgrade does.
func restart(t *testing.T, x *distributed) func() {
	t.Helper()
	for _, m := range x.members {
		if m.service != "ingress" {
			x.replace(t, m, syscall.SIGTERM)
		}
	}
	return func() {}
}

// killNode kills the NATS server that leads the stream of requests.
func killNode(t *testing.T, x *distributed) func() {
	t.Helper()
	n := x.leader(t)
	n.Kill()
	return func() { n.Start(t) }
}

func stallNode(t *testing.T, x *distributed) func() {
	t.Helper()
	n := x.leader(t)
	n.Signal(t, syscall.SIGSTOP)
	return func() { n.Signal(t, syscall.SIGCONT) }
}

func stopDatabase(t *testing.T, x *distributed) func() {
	t.Helper()
	x.database.Stop()
	return x.database.Start
}

// pull is a cable that is pulled: nothing passes, and nobody is told.
func pull(t *testing.T, x *distributed) func() {
	t.Helper()
	for _, l := range x.links {
		l.Part()
	}
	return func() {
		for _, l := range x.links {
			l.Join()
		}
	}
}

// sever breaks all connections between a dispatcher and NATS, and lets nothing pass for a while.
func sever(t *testing.T, x *distributed) func() {
	t.Helper()
	join := pull(t, x)
	for _, l := range x.links {
		l.Cut()
	}
	return join
}
