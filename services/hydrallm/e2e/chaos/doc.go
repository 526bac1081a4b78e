// Package chaos runs a distributed gateway under load: it kills, pauses and parts processes or containers, or waits whether anything grows, and counts at the clients. It
// holds nothing but tests.
package chaos
