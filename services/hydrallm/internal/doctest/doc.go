// Package doctest reads the code blocks of the README and of docs, and what the pages say about how each is tested, so that tests can run them.
package doctest
