// Package movein turns the configuration of another gateway into one of ours.
//
// The source is read into a tree. An importer of a format asks the tree for what it knows and so marks it as taken; what nobody has asked for,
// or what was refused with a reason, is listed with its path and line. Nothing can be forgotten, because nothing has to be remembered: a key
// that the importer has never heard of is a leaf without a mark.
//
// Keys and whatever else may be a secret become ${NAME}. Their values are kept apart, for a file of variables that only its owner can read; no
// message and no comment has one.
package movein
