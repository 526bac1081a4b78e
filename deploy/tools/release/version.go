package main

import (
	"regexp"
	"strings"
)

// version is the name of a release in the forms that packages take.
type version struct {
	given    string // as it is printed by `hydrallm version`
	semantic string // as npm, Helm and Debian take it (https://semver.org), without a v
	snapshot bool   // not a release but what is between two
}

var (
	semantic = regexp.MustCompile(`^v?((?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)(?:-[0-9A-Za-z]+(?:[.-][0-9A-Za-z]+)*)?)$`)
	// What `git describe --tags --always --dirty` adds.
	described = regexp.MustCompile(`-\d+-g[0-9a-f]+(-dirty)?$|-dirty$`)
	unusual   = regexp.MustCompile(`[^0-9A-Za-z-]+`)
)

// parseVersion reads a version: a semantic one, or what git says of a commit that has none, which becomes one that is older than every release.
func parseVersion(given string) version {
	if m := semantic.FindStringSubmatch(given); m != nil {
		return version{given: given, semantic: m[1], snapshot: described.MatchString(given)}
	}
	return version{given: given, semantic: "0.0.0-snapshot.g" + strings.Trim(unusual.ReplaceAllString(given, "-"), "-"), snapshot: true}
}
