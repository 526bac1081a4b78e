// Package config reads the one configuration file and the environment, checks everything, and gives the services a resolved Config in which
// nothing is left to inherit.
package config
