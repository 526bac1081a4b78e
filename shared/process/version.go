package process

import "runtime/debug"

// version is set by the linker: -ldflags "-X hydrallm/shared/process.version=1.2.3".
var version string

// Version is the release of this binary, or the commit it was built from, or "dev".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "dev-" + s.Value[:12]
		}
	}
	return "dev"
}
