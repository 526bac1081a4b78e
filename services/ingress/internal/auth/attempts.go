package auth

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of failed attempts.
const (
	burst        = 30              // failures an address may make at once
	refill       = 2 * time.Second // time for which one failure is held against an address
	maxAddresses = 4096
)

// attempts counts failures per address. It remembers when an address will be free of all of them.
type attempts struct {
	mu   sync.Mutex
	free map[netip.Addr]time.Time
}

// wait gives how long the address has to wait before it may try again.
func (a *attempts) wait(from netip.Addr, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	free, known := a.free[network(from)]
	if !known { // the zero time is too far away to calculate with
		return 0
	}
	return max(0, free.Sub(now)-(burst-1)*refill)
}

func (a *attempts) failed(from netip.Addr, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free == nil {
		a.free = map[netip.Addr]time.Time{}
	}
	key := network(from)
	if _, known := a.free[key]; !known && len(a.free) >= maxAddresses {
		a.makeRoom(now)
	}
	free := a.free[key]
	if free.Before(now) {
		free = now
	}
	a.free[key] = free.Add(refill)
}

// makeRoom forgets addresses without failures, and if there are none, the one that is the least guilty.
func (a *attempts) makeRoom(now time.Time) {
	var least netip.Addr
	var earliest time.Time
	for addr, free := range a.free {
		if !free.After(now) {
			delete(a.free, addr)
		} else if earliest.IsZero() || free.Before(earliest) {
			least, earliest = addr, free
		}
	}
	if len(a.free) >= maxAddresses {
		delete(a.free, least)
	}
}

// network is the address, or for IPv6 the network that one subscriber gets.
func network(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			return p.Addr()
		}
	}
	return addr
}
