// Package e2e tries the compose set of the repository from outside, as an operator and a client would. Its tests need a Docker engine and
// the build tag e2e; run.sh prepares both.
package e2e
