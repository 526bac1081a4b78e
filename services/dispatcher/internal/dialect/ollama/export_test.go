package ollama

// Known counts the models that are remembered.
func (d *Dialect) Known() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.models)
}
