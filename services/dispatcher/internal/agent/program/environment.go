package program

import (
	"slices"
	"strings"
)

// Environment picks from an environment, such as os.Environ, what a program needs to run as if its user had started it, and the variables
// that begin with one of the prefixes. The rest is the gateway's own: an agent has no business with the keys of other providers.
func Environment(environ []string, prefixes ...string) []string {
	var picked []string
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		name = strings.ToUpper(name)
		given := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(usual, name) || slices.ContainsFunc(usualPrefixes, given) || slices.ContainsFunc(prefixes, given) {
			picked = append(picked, variable)
		}
	}
	return picked
}

var (
	usual = []string{
		"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
		"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
		"SYSTEMROOT", "WINDIR", "COMSPEC", "PATHEXT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	}
	usualPrefixes = []string{"LC_", "XDG_"}
)
