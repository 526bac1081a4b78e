// Package config reads the one configuration file and the environment, checks all of it, and gives the services a Config in which nothing is
// left to inherit.
//
// Load reports everything it finds at once: errors, which keep the gateway from starting, and warnings. Each finding names the file, the
// line and the path of the key. No finding shows a value that may be a secret, and a Secret does not show itself however it is printed.
//
// What a key is called, what it may be, its default and its description are declared once, as a setting (settings.go), beside the struct that
// takes the value. The reader, the defaults, the environment variables and the tables of docs/configuration.md come from there.
//
// A file is at most 1 MiB of YAML with one document. A key that is absent or null has its default.
package config
