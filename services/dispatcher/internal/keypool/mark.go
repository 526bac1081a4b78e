package keypool

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// markDomain keeps marks apart from other hashes of the same keys.
const markDomain = "hydrallm mark\x00"

// Mark is a name for secrets that tells nothing of them: eight hexadecimal digits of a hash. It is the same in every process, so that a key is
// known wherever it stands in a configuration, and one that takes its place is not mistaken for it.
func Mark(secrets ...string) string {
	sum := sha256.Sum256([]byte(markDomain + strings.Join(secrets, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// MarkOf gives the mark of the key at index.
func (p *Pool) MarkOf(index int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state[index].mark
}

// Find gives the index of the key with this mark, -1 when there is none.
func (p *Pool) Find(mark string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.state {
		if p.state[i].mark == mark {
			return i
		}
	}
	return -1
}

// Cooling reads the cooldown of a key for a model, "" for the one for every model. It gives false when there is none in force.
func (p *Pool) Cooling(index int, model string) (Cooldown, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &p.state[index]
	c := k.cooldown
	if model != "" {
		c = k.byModel[model]
	}
	return Cooldown{Index: index, Model: model, Class: c.class, Until: c.until}, c.left(time.Now()) > 0
}
