package keypool

import "time"

// Sample gives a key that does not rest, for something that is no call of a model, such as listing models. It counts for nothing.
func (p *Pool) Sample() (key string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range p.state {
		if k := &p.state[i]; k.usable("", AnyKey, now) {
			return k.Value, true
		}
	}
	return "", false
}

// Has says whether the pool holds a key.
func (p *Pool) Has(value string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.state {
		if p.state[i].Value == value {
			return true
		}
	}
	return false
}
