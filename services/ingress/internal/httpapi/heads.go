package httpapi

import (
	"bytes"
	"slices"
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
	if unique(raw) {
		return decodeHead(raw)
	}
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

// unique says whether a head holds what an upstream says of a single call, so that it will not come again.
func unique(raw []byte) bool {
	return slices.ContainsFunc(ofOneCall, func(name []byte) bool { return bytes.Contains(raw, name) })
}

var ofOneCall = [][]byte{[]byte("X-Upstream-Request-Id"), []byte("X-Ratelimit-"), []byte("Anthropic-Ratelimit-"), []byte("Openai-Processing-Ms")}

var contentType = []byte("content-type")

func isContentType(name []byte) bool { return bytes.EqualFold(name, contentType) }

func hasPrefixFold(s, prefix []byte) bool {
	return len(s) >= len(prefix) && bytes.EqualFold(s[:len(prefix)], prefix)
}
