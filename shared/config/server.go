package config

import (
	"math"
	"net"
	"strconv"
	"strings"
	"time"
)

// Server is the client's side: where the gateway listens and whom it lets in.
type Server struct {
	Host         string // IP address or host name
	Port         int
	MaxBodyBytes int      // a larger request body gets 413
	ClientKeys   []Secret // for /v1; none = open
	AdminKey     Secret   // "" = the admin routes are closed unless Debug
	Debug        bool
	CORSOrigins  []string // for /v1 without /v1/admin
	QueueTimeout time.Duration
	DrainTimeout time.Duration
	ToolInstall  bool
	Locale       string // en | ko
}

const (
	portWithFile    = 8100
	portWithoutFile = 8000 // C-01
)

func defaultServer() Server {
	return Server{
		Host: "0.0.0.0", Port: portWithFile, MaxBodyBytes: 32 << 20,
		QueueTimeout: 30 * time.Second, DrainTimeout: time.Minute, Locale: "en",
	}
}

// Bind is the address to listen on.
func (s Server) Bind() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Loopback says whether only this machine can reach the listener.
func (s Server) Loopback() bool {
	if strings.EqualFold(s.Host, "localhost") {
		return true
	}
	ip := net.ParseIP(s.Host)
	return ip != nil && ip.IsLoopback()
}

func (doc *document) server(n node) {
	s := &doc.Server
	n.fields(map[string]func(node){
		"host": s.readHost, "port": integer(&s.Port, 1, math.MaxUint16), "max_body_bytes": integer(&s.MaxBodyBytes, 1, math.MaxInt32),
		"client_keys": s.readClientKeys, "admin_key": secret(&s.AdminKey), "debug": boolean(&s.Debug),
		"cors_origins":  s.readOrigins,
		"queue_timeout": positive(&s.QueueTimeout), "drain_timeout": duration(&s.DrainTimeout),
		"tool_install": boolean(&s.ToolInstall), "locale": oneOf(&s.Locale, "en", "ko"),
	})
}

func (s *Server) readHost(n node) {
	host, ok := n.expanded()
	if !ok {
		return
	}
	if !validHost(host) {
		n.fail("must be an IP address or a host name (got %s)", n.shown())
		return
	}
	s.Host = host
}

func (s *Server) readClientKeys(n node) {
	s.ClientKeys = nil
	seen := map[Secret]bool{}
	n.words(func(item node) {
		key, ok := item.secret()
		switch {
		case !ok:
		case key == "":
			item.warn("empty client key, ignored")
		case seen[key]:
			item.warn("the same client key again, ignored")
		default:
			seen[key] = true
			s.ClientKeys = append(s.ClientKeys, key)
		}
	})
}

// readOrigins takes origins as browsers send them: scheme, host and port, nothing else. "*" is none.
func (s *Server) readOrigins(n node) {
	s.CORSOrigins = nil
	n.words(func(item node) {
		text, ok := item.expanded()
		if !ok {
			return
		}
		u, problem := parseURL(text, "http", "https")
		if problem != "" || u.Path != "" || u.RawQuery != "" {
			item.fail("must be an origin such as https://app.example (got %s)", item.shownURL())
			return
		}
		s.CORSOrigins = append(s.CORSOrigins, strings.ToLower(u.Scheme+"://"+u.Host))
	})
}

// checkServer warns of doors that stand open.
func (doc *document) checkServer() {
	s := doc.Server
	if s.Loopback() {
		return
	}
	if len(s.ClientKeys) == 0 {
		doc.warn("server.client_keys", "there are no client keys although host %s is not only this machine: whoever can connect can use the providers", s.Host)
	}
	if s.Debug && s.AdminKey == "" {
		doc.warn("server.debug", "debug without an admin key on host %s: whoever can connect can use the admin routes", s.Host)
	}
}
