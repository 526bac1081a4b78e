package httpapi

import (
	"bytes"
	"sync"
)

// maxHeads bounds the heads that are kept decoded. There are about as many as upstreams.
const maxHeads = 512

// heads keeps decoded heads: the same few come again and again.
type heads struct {
	mu    sync.RWMutex
	known map[string]*head
}

func (c *heads) parse(raw []byte) (*head, error) {
	c.mu.RLock()
	h := c.known[string(raw)]
	c.mu.RUnlock()
	if h != nil {
		return h, nil
	}
	h, err := decodeHead(raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxHeads {
		c.known = map[string]*head{}
	}
	c.known[string(raw)] = h
	return h, nil
}

var contentType = []byte("content-type")

func isContentType(name []byte) bool { return bytes.EqualFold(name, contentType) }

func hasPrefixFold(s, prefix []byte) bool {
	return len(s) >= len(prefix) && bytes.EqualFold(s[:len(prefix)], prefix)
}
