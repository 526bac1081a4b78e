// Package firstconfig writes a first configuration: it finds keys in the environment and servers on this machine, asks what it can't know, and writes a
// file with comments that passes the check of the gateway.
package firstconfig
