//go:build !linux

package process

// unmapFiles does nothing where the system does not tell which pages it may take.
func unmapFiles() {}
