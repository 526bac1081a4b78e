package httpapi

import (
	"net/url"
	"strings"

	"hydrallm/shared/fault"
)

// pathOf gives the path of a request target, with escapes resolved. It is refused unless everybody on the way reads it alike: a rule of a
// proxy in front of the gateway, say for /v1/models/, must not let through what the gateway would then take for another route.
//
// Nothing is normalised. There are no "." or ".." segments, escaped or not, and no empty ones but at the end. Names of routes are written as
// they are; only the id below /v1/models/ may hold escapes of characters that need none, such as %2F.
func pathOf(target string) (string, *fault.Fault) {
	raw, ok := pathPart(target)
	if !ok || strings.Contains(raw, "//") || strings.ContainsAny(raw, `\#`) {
		return "", badPath()
	}
	path, err := url.PathUnescape(raw)
	if err != nil || hasDots(path) {
		return "", badPath()
	}
	if path != raw && !strings.HasPrefix(raw, pathModels+"/") && needlessEscape(raw) {
		return "", badPath()
	}
	return path, nil
}

func badPath() *fault.Fault {
	return &fault.Fault{
		Kind: fault.Invalid, Code: "invalid_path",
		Message: `The path must not hold ".", ".." or empty segments (does the base URL end in a slash?), nor escapes of characters that need ` +
			"none; %2F is only for the id after " + pathModels + "/",
	}
}

// pathPart cuts the path out of a request target, which is a path with a query or, towards a proxy, a whole address (RFC 9112, section 3.2).
func pathPart(target string) (path string, ok bool) {
	target, _, _ = strings.Cut(target, "?")
	if strings.HasPrefix(target, "/") {
		return target, true
	}
	scheme, rest, ok := strings.Cut(target, "://")
	if !ok || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", false
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return rest[i:], true
	}
	return "/", true
}

// hasDots says whether a segment of a path means this place or the one above.
func hasDots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return true
		}
	}
	return false
}

// needlessEscape says whether a valid path holds an escape of a character that is unreserved (RFC 3986, section 2.3) or a separator.
func needlessEscape(raw string) bool {
	for _, escape := range strings.Split(raw, "%")[1:] {
		c, err := url.PathUnescape("%" + escape[:2])
		if err != nil || strings.ContainsAny(c, `/\`) || url.PathEscape(c) == c && !strings.ContainsAny(c, "$&+:=@") {
			return true
		}
	}
	return false
}
