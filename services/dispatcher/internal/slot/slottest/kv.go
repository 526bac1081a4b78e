// Package slottest holds the conformance suite of slot.Acquirer and an in-memory store to run it on.
package slottest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"hydrallm/services/dispatcher/internal/slot"
)

// Memory is a linearizable store in memory. Values never expire.
type Memory struct {
	mu       sync.Mutex
	values   map[string]entry
	revision uint64
	won      int
}

type entry struct {
	value    []byte
	revision uint64
}

// Client gives a view of the store whose operations take so long before and after their effect.
func (m *Memory) Client(delay time.Duration) slot.KV { return &client{memory: m, delay: delay} }

// Swaps gives how many values were written by Swap.
func (m *Memory) Swaps() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.won
}

// Put stores a value whatever was there.
func (m *Memory) Put(key string, value []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(key, value)
}

// Clear forgets everything, as a store with expiry does.
func (m *Memory) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.values)
}

// Values gives a copy of what is stored.
func (m *Memory) Values() map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[string]string, len(m.values))
	for key, e := range m.values {
		all[key] = string(e.value)
	}
	return all
}

func (m *Memory) get(key string) ([]byte, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.values[key]
	return e.value, e.revision
}

func (m *Memory) swap(key string, value []byte, revision uint64) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values[key].revision != revision {
		return 0
	}
	m.won++
	return m.put(key, value)
}

func (m *Memory) put(key string, value []byte) uint64 {
	if m.values == nil {
		m.values = map[string]entry{}
	}
	m.revision++
	m.values[key] = entry{slices.Clone(value), m.revision}
	return m.revision
}

type client struct {
	memory *Memory
	delay  time.Duration
}

func (c *client) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if err := c.wait(ctx); err != nil {
		return nil, 0, err
	}
	value, revision := c.memory.get(key)
	return value, revision, c.wait(ctx)
}

func (c *client) Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if err := c.wait(ctx); err != nil {
		return 0, err
	}
	return c.memory.swap(key, value, revision), c.wait(ctx)
}

func (c *client) wait(ctx context.Context) error {
	if c.delay == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(c.delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ErrCut is what a store answers that is cut off.
var ErrCut = errors.New("store is cut off")

// Cuttable is a client that can lose its store.
type Cuttable struct {
	slot.KV
	cut atomic.Bool
}

// Cut makes every operation fail from now on, or work again.
func (c *Cuttable) Cut(cut bool) { c.cut.Store(cut) }

// Get is KV.Get.
func (c *Cuttable) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if c.cut.Load() {
		return nil, 0, ErrCut
	}
	return c.KV.Get(ctx, key)
}

// Swap is KV.Swap.
func (c *Cuttable) Swap(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if c.cut.Load() {
		return 0, ErrCut
	}
	return c.KV.Swap(ctx, key, value, revision)
}
