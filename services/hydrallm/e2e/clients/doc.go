// Package clients runs real clients, as their users install them, against the gateway before the mock upstream. Its tests need npm, pip and their
// registries once on a machine, and the build tag e2e; what is installed is in the lock files beside the scenarios.
package clients
