package config

import (
	"net/url"
	"regexp"
	"strings"
)

// Origins that are not scheme, host and port.
const (
	AnyOrigin  = "*"    // every page
	NullOrigin = "null" // what browsers send for pages without an origin: files, sandboxed frames
)

// wildcard stands for any port, or for any host of a scheme that is not the web's.
const wildcard = "*"

var urlScheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*$`) // RFC 3986, section 3.1

// origin gives an origin as browsers send it, or a pattern of origins: scheme://host and maybe a port, in lower case and without the
// port that the scheme implies. The port may be "*". Applications of a scheme of their own, such as vscode-webview, make up their hosts; for
// those "scheme://" and "scheme://*" are all of the scheme.
func origin(n node) (string, bool) {
	if n.null() && n.Value == NullOrigin { // YAML's null, but what else could be meant
		return NullOrigin, true
	}
	text, ok := n.expanded()
	if !ok || text == "" || text == AnyOrigin || text == NullOrigin {
		return text, ok
	}
	if o := normalOrigin(text); o != "" {
		return o, true
	}
	n.fail("must be an origin such as https://app.example or http://localhost:* (got %s)", n.shownURL())
	return "", false
}

// normalOrigin gives "" for what is no origin.
func normalOrigin(text string) string {
	scheme, host, ok := strings.Cut(text, "://")
	if !ok || !urlScheme.MatchString(scheme) {
		return ""
	}
	scheme = strings.ToLower(scheme)
	host = strings.ToLower(strings.TrimRight(host, "/"))
	implied := map[string]string{"http": ":80", "https": ":443"}[scheme]
	if implied == "" && (host == "" || host == wildcard) {
		return scheme + "://" + wildcard
	}
	host, anyPort := strings.CutSuffix(host, ":"+wildcard)
	u, err := url.Parse("x://" + host)
	switch {
	case err != nil || u.Hostname() == "" || u.Host != host || !validPort(u.Port()) || strings.HasSuffix(host, ":"), strings.ContainsAny(host, "*%"):
		return ""
	case anyPort && u.Port() != "":
		return ""
	case anyPort:
		host += ":" + wildcard
	case implied != "":
		host = strings.TrimSuffix(host, implied)
	}
	return scheme + "://" + host
}

// checkOrigins refuses to let every page use a gateway that asks for no key: a page that its user merely looks at would be enough.
func (doc *document) checkOrigins() {
	if len(doc.Server.ClientKeys) > 0 || doc.Server.ClientAccess == "keys" {
		return
	}
	for _, o := range doc.Server.CORSOrigins {
		switch o {
		case AnyOrigin:
			doc.fail("server.cors_origins", `"*" lets every web page use the gateway: it needs server.client_keys`)
		case NullOrigin:
			doc.warn("server.cors_origins", `every web page can have the origin "null", in a sandboxed frame: without server.client_keys all of them can use the gateway`)
		}
	}
}
