// Package program runs command-line programs that answer one question each, such as an agent's own client.
//
// Nothing that a stranger wrote is put on a command line: whoever is on the machine can read those. What a program is told comes through
// its standard input or a file. There is no shell. A program and what it started end together.
package program
