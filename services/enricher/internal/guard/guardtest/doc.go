// Package guardtest has an Internet on loopback, and tables of addresses and set-ups with which others have tried to get from it into an
// internal network. Whatever fetches pages through a guard is tested with all of them.
package guardtest
