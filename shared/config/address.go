package config

import (
	"math"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// web is the address of an HTTP server, or "".
func web(p *string) kind {
	return kind{name: "address", expands: true, at: p, read: func(n node) {
		if u, ok := n.address("http", "https"); ok {
			*p = u
		}
	}}
}

// address gives a URL of one of the schemes, or "".
func (n node) address(schemes ...string) (string, bool) {
	s, ok := n.expanded()
	if ok && s == "" {
		delete(n.r.lines, n.path) // an empty address is none, so that whoever needs one says that it is missing
	}
	if !ok || s == "" {
		return "", ok
	}
	u, problem := parseURL(s, schemes...)
	if problem != "" {
		n.fail("%s (got %s)", problem, n.shownURL())
		return "", false
	}
	return u.String(), true
}

// parseURL reads a URL that has a host and one of the schemes, but no user, password or fragment. It has no slash at its end.
func parseURL(raw string, schemes ...string) (u *url.URL, problem string) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Hostname() == "" || !slices.Contains(schemes, u.Scheme):
		return nil, "must be an address with a host that begins with " + strings.Join(schemes, ":// or ") + "://"
	case !validPort(u.Port()):
		return nil, "must have a port from 1 to 65535"
	case u.User != nil:
		return nil, "must not hold a user name or a password"
	case u.Fragment != "":
		return nil, "must not hold a fragment"
	}
	u.Path, u.RawPath = strings.TrimRight(u.Path, "/"), strings.TrimRight(u.RawPath, "/")
	return u, ""
}

// validPort says whether text is a port, or absent.
func validPort(text string) bool {
	i, err := strconv.Atoi(text)
	return text == "" || err == nil && i > 0 && i <= math.MaxUint16
}

// shownURL is the address as the file has it, without what may be secret in it: user, password and query.
func (n node) shownURL() string {
	if n.Kind != yaml.ScalarNode {
		return n.shape()
	}
	s, query, _ := strings.Cut(n.Value, "?")
	if i := strings.LastIndex(s, "@"); i >= 0 {
		s = Redacted + s[i:]
	}
	if query != "" {
		s += "?" + Redacted
	}
	return strconv.Quote(short(s))
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9])?$`)

// host gives an IP address or a host name, without a port.
func (n node) host() (string, bool) {
	s, ok := n.expanded()
	if ok && !validHost(s) {
		n.fail("must be an IP address or a host name (got %s)", n.shown())
		return "", false
	}
	return s, ok
}

// hostPort is where something listens.
func hostPort(p *string) kind {
	return kind{name: "`host:port`", expands: true, at: p, read: func(n node) {
		text, ok := n.expanded()
		if !ok || text == "" {
			return
		}
		host, port, err := net.SplitHostPort(text)
		if err != nil || host != "" && !validHost(host) || port == "" || !validPort(port) {
			n.fail("must be host:port (got %s)", n.shown())
			return
		}
		*p = text
	}}
}

// validHost says whether text is an IP address or a host name, without a port.
func validHost(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil || hostName.MatchString(text)
}
