// Command release writes what a release of the gateway consists of: archives, images, packages for Debian and npm, a chart for Helm, a formula for Homebrew, bills of
// materials, release notes and checksums. The same sources, version and Go give the same bytes, wherever it runs. It is a module of its own, so that its libraries are no
// dependency of the gateway.
//
//	go run . [-url URL] [-cache DIRECTORY] VERSION DIRECTORY [OS/ARCH...]
package main
