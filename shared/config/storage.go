package config

import (
	"math"
	"net"
	"net/url"
	"strings"
)

// Sessions is the session-writer's part.
type Sessions struct {
	Database         Secret // sqlite:<path> or postgres://...
	CompactThreshold int    // estimated tokens
	RecentWindow     int    // messages
	RetentionDays    int    // 1 to 365
	MaxSessions      int    // 0 = no limit
}

func (doc *document) sessions(n node) {
	s := &doc.Sessions
	n.fields(map[string]func(node){
		"database": s.readDatabase, "compact_threshold": integer(&s.CompactThreshold, 1, math.MaxInt32),
		"recent_window": integer(&s.RecentWindow, 1, math.MaxInt32), "retention_days": integer(&s.RetentionDays, 1, 365),
		"max_sessions": integer(&s.MaxSessions, 0, math.MaxInt32),
	})
}

// readDatabase never shows the value: it may hold a password.
func (s *Sessions) readDatabase(n node) {
	value, ok := n.secret()
	if !ok {
		return
	}
	text := value.Reveal()
	if path, found := strings.CutPrefix(text, "sqlite:"); found && path != "" {
		s.Database = value
		return
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || !validPort(u.Port()) {
		n.fail("must be sqlite:<path> or postgres://<user>:<password>@<host>/<database>")
		return
	}
	s.Database = value
}

// NATS says where the server is, or how the embedded one runs.
type NATS struct {
	URL         string // one address or more, separated by commas; "" = embedded
	Listen      string // host:port of the embedded server, "" = only inside the process
	Credentials string // path of a file
	StoreDir    string
	Replicas    int  // 1 to 5
	WorkOnDisk  bool // the request stream is kept in files, not in memory
}

func (doc *document) nats(n node) {
	c := &doc.NATS
	storage := ""
	n.fields(map[string]func(node){
		"url": c.readURL, "listen": c.readListen, "credentials": expanded(&c.Credentials), "store_dir": expanded(&c.StoreDir),
		"replicas": integer(&c.Replicas, 1, 5), "work_storage": oneOf(&storage, "memory", "file"),
	})
	c.WorkOnDisk = storage == "file"
}

func (c *NATS) readURL(n node) {
	var all []string
	n.words(func(item node) {
		text, ok := item.expanded()
		if !ok {
			return
		}
		if _, problem := parseURL(text, "nats", "tls", "ws", "wss"); problem != "" {
			item.fail("%s (got %s)", problem, item.shownURL())
			return
		}
		all = append(all, text)
	})
	c.URL = strings.Join(all, ",")
}

func (c *NATS) readListen(n node) {
	text, ok := n.expanded()
	if !ok || text == "" {
		return
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || host != "" && !validHost(host) || port == "" || !validPort(port) {
		n.fail("must be host:port (got %s)", n.shown())
		return
	}
	c.Listen = text
}
