package config

import (
	"crypto/tls"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // images have none
)

// Server is the client's side: where the gateway listens and whom it lets in.
type Server struct {
	Host         string // IP address or host name
	Port         int
	TLS          TLS
	MaxBodyBytes int      // a larger request body gets 413
	ClientKeys   []Secret // for /v1; none = open
	ClientAccess string   // auto | keys | open
	Proxies      []string // addresses and networks whose X-Forwarded-For counts
	AdminKey     Secret   // "" = the admin routes are closed unless Debug
	PreviousKey  Secret   // the admin key before this one, under which stored keys may be sealed still; "" = none
	Debug        bool
	CORSOrigins  []string // for /v1 without /v1/admin
	QueueTimeout time.Duration
	Lifetime     time.Duration // of a request in the background
	PingAfter    time.Duration // until a stream whose upstream is silent gets status line and comments; 0 = never
	StopPause    time.Duration // from being told to stop to closing the port
	DrainTimeout time.Duration
	MaxConns     int // client connections at the same time; 0 = unlimited
	ToolInstall  bool
	Docs         bool
	Locale       string   // en | ko
	Enabled      []string // discovered models that are listed, as the list names them; none = all
	TimeZone     string   // of dates in prompts; "" = that of the process
}

// TLS is what the gateway's port speaks HTTPS with.
type TLS struct {
	Cert       string // path of a PEM file; "" = it speaks HTTP
	Key        string // path of the file of its private key
	MinVersion string // 1.2 | 1.3
}

// On says whether the port speaks HTTPS.
func (t TLS) On() bool { return t.Cert != "" }

// Version is the oldest one that is spoken, such as tls.VersionTLS12.
func (t TLS) Version() uint16 {
	if t.MinVersion == "1.3" {
		return tls.VersionTLS13
	}
	return tls.VersionTLS12
}

// MaxLifetime is the longest lifetime of a request in the background: what it needs is kept on disk for longer.
const MaxLifetime = 6 * time.Hour

const portWithoutFile = 8000 // C-01

func (s *Server) settings() []setting {
	return []setting{
		key("host", kind{name: "IP address or host name", expands: true, at: &s.Host, read: func(n node) {
			if host, ok := n.host(); ok {
				s.Host = host
			}
		}}, "0.0.0.0", "address to listen on").env("HOST").not("bind", "listen", "address"),
		key("port", integer(&s.Port, 1, math.MaxUint16), "8100", "port to listen on; `8000` when there is no file").env("PORT"),
		key("tls", mapping(
			key("cert_file", path(&s.TLS.Cert), "", "PEM file with the certificate, and behind it those of the authorities in between").env("TLS_CERT_FILE").not("cert", "certfile", "certificate"),
			key("key_file", path(&s.TLS.Key), "", "PEM file with its private key").env("TLS_KEY_FILE").not("key", "keyfile"),
			key("min_version", oneOf(&s.TLS.MinVersion, "1.2", "1.3"), "1.2", "the oldest version of TLS that clients may speak"),
		), "", "the port speaks HTTPS, and nothing else, with this certificate. The files are read again when they change; see [TLS](tls.md)"),
		key("max_body_bytes", integer(&s.MaxBodyBytes, 1, math.MaxInt32), "33554432", "a larger request body gets 413"),
		key("max_connections", integer(&s.MaxConns, 0, math.MaxInt32), "10000", "connections of clients at the same time; 0 for no limit. At the limit "+
			"idle connections are closed for new ones; if there is none, requests on further connections get 503 `too_many_connections`"),
		key("client_keys", listOf(&s.ClientKeys, "list of text", node.credential), "[]", "keys that clients must send to `/v1`, as "+
			"`Authorization: Bearer`, `x-api-key` or `api-key`. Empty: everybody may, with a warning when the address is not only this machine").
			not("apikeys", "keys", "apikey", "key"),
		key("client_access", oneOf(&s.ClientAccess, "auto", "keys", "open"), "auto", "whom `/v1` lets in. `auto`: everybody, until there is a client key, configured "+
			"or made at run time; from then on who has one, also when the last one made at run time is revoked. `keys`: who has a key. `open`: everybody; a key only says "+
			"who asks, with its limits"),
		key("trusted_proxies", listOf(&s.Proxies, "list of addresses and networks", network), "[]", "proxies whose `X-Forwarded-For` tells the address of a client, "+
			"such as `10.0.0.0/8`, for the limit of wrong keys and for the log"),
		key("admin_key", credential(&s.AdminKey), "", "key for `/v1/admin`, sent as `X-Admin-Key`. Without one those routes answer 503, unless `debug` is on").
			not("masterkey", "adminapikey"),
		key("admin_key_previous", credential(&s.PreviousKey), "", "the admin key before the last change. It opens nothing but the keys that were added at run time, "+
			"which are encrypted with the new one then; afterwards it can go"),
		key("debug", boolean(&s.Debug), "false", "opens the admin routes when there is no admin key, and logs at level debug"),
		key("cors_origins", listOf(&s.CORSOrigins, "list of origins", origin), "[]", "origins whose pages may call `/v1`, of any scheme, such "+
			"as `https://app.example`, `http://localhost:*` (any port), `vscode-webview://*` (any host, not for http), `\"null\"`, or `*` for all, which needs "+
			"`client_keys`. Never for `/v1/admin`"),
		key("queue_timeout", positive(&s.QueueTimeout), "30s", "a request that no worker of a stage takes within this time gets 503 with `Retry-After`"),
		key("background_lifetime", hours(&s.Lifetime, int(MaxLifetime/time.Hour)), "1h", "a response in the background (`background: true`) that has not ended by then is "+
			"`failed`"),
		key("ping_after", duration(&s.PingAfter), "30s", "a stream whose upstream is silent for this long gets its status line, and comments from then on, so "+
			"that proxies do not cut it; 0 for never. What fails afterwards is an error event in a stream of status 200"),
		key("stop_pause", duration(&s.StopPause), "0s", "how long a process that is told to stop says at `/readyz` that it is not ready, and serves on, "+
			"before it closes the port: the time that a load balancer needs to notice"),
		key("drain_timeout", duration(&s.DrainTimeout), "60s", "how long running answers may go on after that"),
		key("docs", boolean(&s.Docs), "true", "serves these pages below `/docs`, to everybody who reaches the gateway"),
		key("tool_install", boolean(&s.ToolInstall), "false", "lets the admin routes install tools; off, they answer 403 with instructions. It lets whoever has "+
			"the admin key run programs from npm on the machine of the ingress"),
		key("locale", oneOf(&s.Locale, "en", "ko"), "en", "language of the blocks that are put into prompts, and of `/ui` at first").
			env("LOCALE").live(),
		key("enabled_models", list(&s.Enabled), "[]", "discovered models that `/v1/models` lists, by the names that it has for them. Empty: all. Configured models and "+
			"`auto` are always listed; those that are not can be used all the same").env("ENABLED_MODELS").live(),
		key("time_zone", kind{name: "name of a time zone", expands: true, at: &s.TimeZone, read: s.readZone}, "", "of dates in prompts, such as `Asia/Seoul`. Empty: the one of the "+
			"process, which the variable `TZ` sets").env("TIME_ZONE"),
	}
}

func (s *Server) readZone(n node) {
	text, ok := n.expanded()
	if !ok {
		return
	}
	if _, err := time.LoadLocation(text); err != nil {
		n.fail("must be the name of a time zone, such as UTC or Asia/Seoul (got %s)", n.shown())
		return
	}
	s.TimeZone = text
}

// Zone is the time zone of dates in prompts.
func (s Server) Zone() *time.Location {
	if s.TimeZone == "" {
		return time.Local
	}
	zone, err := time.LoadLocation(s.TimeZone)
	if err != nil { // it was there when the configuration was read
		return time.Local
	}
	return zone
}

// network reads an address or a network.
func network(n node) (string, bool) {
	text, ok := n.expanded()
	if !ok || text == "" {
		return text, ok
	}
	if p, err := netip.ParsePrefix(text); err == nil {
		return p.Masked().String(), true
	}
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()).String(), true
	}
	n.fail("must be an address or a network such as 10.0.0.0/8 (got %s)", n.shown())
	return "", false
}

// TrustedProxies gives the networks of `trusted_proxies`.
func (s Server) TrustedProxies() (all []netip.Prefix) {
	for _, text := range s.Proxies {
		if p, err := netip.ParsePrefix(text); err == nil { // it was one when the configuration was read
			all = append(all, p)
		}
	}
	return all
}

// Bind is the address to listen on.
func (s Server) Bind() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// StopLimit is how long a stop may take before work under way is cut off.
func (s Server) StopLimit() time.Duration { return s.StopPause + s.DrainTimeout }

// URL is the address of the gateway for programs on the same machine, without a slash at its end.
func (s Server) URL() string {
	scheme, host := "http", s.Host
	if s.TLS.On() {
		scheme = "https"
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(s.Port))
}

// Loopback says whether only this machine can reach the listener.
func (s Server) Loopback() bool {
	if strings.EqualFold(s.Host, "localhost") {
		return true
	}
	ip := net.ParseIP(s.Host)
	return ip != nil && ip.IsLoopback()
}

// checkServer warns of doors that stand open.
func (doc *document) checkServer() {
	doc.checkOrigins()
	s := doc.Server
	if (s.TLS.Cert == "") != (s.TLS.Key == "") {
		doc.fail("server.tls", "cert_file and key_file go together")
	}
	if s.AdminKey != "" && slices.Contains(s.ClientKeys, s.AdminKey) {
		doc.warn("server.admin_key", "is a client key too: whoever may ask for answers may use the admin routes")
	}
	if s.Loopback() {
		return
	}
	if len(s.ClientKeys) == 0 && s.ClientAccess != "keys" {
		doc.warn("server.client_keys", "there are no client keys although host %s is not only this machine: whoever can connect can use the providers", s.Host)
	}
	if s.Debug && s.AdminKey == "" {
		doc.warn("server.debug", "debug without an admin key on host %s: whoever can connect can use the admin routes", s.Host)
	}
}
