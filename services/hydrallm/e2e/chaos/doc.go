// Package chaos kills, pauses and parts the processes of a distributed gateway under load, and counts at its clients. It holds nothing but tests.
package chaos
