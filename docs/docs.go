// Package docs holds the documents of this directory, as they are read in the repository. Package site makes pages of them.
package docs

import "embed"

// Files are the documents and their pictures, by their paths below this directory.
//
//go:embed *.md *.png adr clients providers
var Files embed.FS
