// Package archtest holds the rules about who may import whom, where code lives and how the modules are tied together, and the test that
// applies them to this repository. The rules look at source files, so no build tag hides an import from them.
package archtest
