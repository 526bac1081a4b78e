// Package output collects in tests what programs and loggers write.
package output

import (
	"bytes"
	"strings"
	"sync"
)

// Buffer may be written and read by several goroutines. The zero value is empty.
type Buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write implements io.Writer.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// String is what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// Count says how often text was written so far.
func (b *Buffer) Count(text string) int { return strings.Count(b.String(), text) }

// Take is String, and empties the buffer.
func (b *Buffer) Take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.buf.Reset()
	return b.buf.String()
}
