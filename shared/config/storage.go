package config

import (
	"iter"
	"math"
	"net/url"
	"strings"
)

// Sessions is the session-writer's part.
type Sessions struct {
	Database         Secret // sqlite:<path> or postgres://...
	CompactThreshold int    // estimated tokens
	RecentWindow     int    // messages
	Compressor       string // extractive | http | llm | off
	CompressorURL    string // for http
	CompressorModel  string // for llm, as clients name it
	RetentionDays    int    // 1 to 365
	MaxSessions      int    // 0 = no limit
	StoreResponses   bool   // clients may have responses stored
	SystemContext    bool   // prompts begin with the block of R-055
}

func (s *Sessions) settings() []setting {
	return []setting{
		key("database", kind{name: "`sqlite:<path>` or `postgres://...`", expands: true, at: &s.Database, read: s.readDatabase}, "sqlite:data/hydrallm.db",
			"where sessions, usage and logs are stored").env("DATABASE_URL"),
		key("compact_threshold", integer(&s.CompactThreshold, 1, math.MaxInt32), "6000",
			"estimated tokens of a session from which on older messages are summarised").env("SESSION_COMPACT_THRESHOLD"),
		key("recent_window", integer(&s.RecentWindow, 1, math.MaxInt32), "4", "newest messages that are never summarised").env("SESSION_RECENT_WINDOW"),
		key("compressor", oneOf(&s.Compressor, "extractive", "http", "llm", "off"), "extractive", "what makes the summary: `extractive` keeps the sentences that say most and "+
			"needs no model, `http` asks `compressor_url`, `llm` asks `compressor_model`, with `off` nothing is summarised"),
		key("compressor_url", web(&s.CompressorURL), "", "a compressor such as LLMLingua-2, for `compressor: http`. It gets `{\"text\": ..., \"target_tokens\": 800}` and "+
			"answers `{\"text\": ...}`. When it fails, `extractive` does the work"),
		key("compressor_model", name(&s.CompressorModel), "auto", "the model for `compressor: llm`, by any name that clients may use; its calls are in the usage like any other. "+
			"When it fails, `extractive` does the work"),
		key("retention_days", integer(&s.RetentionDays, 1, 365), "30", "sessions that were not used for so long are deleted").
			env("SESSION_RETENTION_DAYS").live(),
		key("max_sessions", integer(&s.MaxSessions, 0, math.MaxInt32), "0",
			"more than this, and the ones that were not used for longest are deleted; 0 for no limit").env("MAX_SESSIONS").live(),
		key("store_responses", boolean(&s.StoreResponses), "true", "responses are stored, for as long as `retention_days`, unless their request says `store: false`; "+
			"with `false` none is, and `previous_response_id` is refused"),
		key("system_context", boolean(&s.SystemContext), "true", "routed requests, those of a session, and those for models with `pipeline: true` begin with a "+
			"system message that tells the date and how far sources may be trusted"),
	}
}

// checkSessions looks for an address that is needed, or needed by nobody.
func (doc *document) checkSessions() {
	switch s := doc.Sessions; {
	case s.Compressor == "http" && s.CompressorURL == "" && !doc.given("sessions.compressor_url"):
		doc.fail("sessions.compressor_url", "is missing: compressor http needs it")
	case s.Compressor != "http" && s.CompressorURL != "":
		doc.warn("sessions.compressor_url", "has no effect with compressor %s", s.Compressor)
	}
	if s := doc.Sessions; s.Compressor != "llm" && s.CompressorModel != "auto" {
		doc.warn("sessions.compressor_model", "has no effect with compressor %s", s.Compressor)
	}
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
	NkeySeed    string // path of a file with the seed of an nkey
	CA          string // path of a file with the authorities that the server's certificate may come from; "" = those of the system
	Cert        string // path of the file of a client certificate
	Key         string // path of the file of its private key
	StoreDir    string
	Replicas    int  // 1 to 5
	WorkOnDisk  bool // the request stream is kept in files, not in memory
}

func (c *NATS) settings() []setting {
	var storage string
	workStorage := oneOf(&storage, "memory", "file")
	word := workStorage.read
	workStorage.at = &c.WorkOnDisk
	workStorage.read = func(n node) {
		word(n)
		c.WorkOnDisk = storage == "file"
	}
	return []setting{
		key("url", kind{name: "address", expands: true, at: &c.URL, read: c.readURL}, "", "`nats://`, `tls://`, `ws://` or `wss://`; several with commas. "+
			"Empty: the embedded server, in the all-in-one binary only. No user or password: use `credentials` or `nkey_seed_file`").env("NATS_URL"),
		key("listen", hostPort(&c.Listen), "", "where the embedded server also listens for other processes"),
		key("credentials", path(&c.Credentials), "", "credentials file (JWT and seed) for a secured server"),
		key("nkey_seed_file", path(&c.NkeySeed), "", "file with the seed of an nkey, by which the server knows the service. It is read again at each connection"),
		key("ca", path(&c.CA), "", "PEM file with the authorities that the server's certificate must come from, which demands TLS. Empty: those of the system, with `tls://`"),
		key("cert", path(&c.Cert), "", "PEM file with a client certificate, for a server that asks for one; with `key`"),
		key("key", path(&c.Key), "", "PEM file with the private key of `cert`"),
		key("store_dir", path(&c.StoreDir), "data/nats", "directory of the embedded server"),
		key("replicas", integer(&c.Replicas, 1, 5), "1", "copies of streams and buckets; above 1 needs a cluster"),
		key("work_storage", workStorage, "memory", "where the stream of requests is kept, and in a cluster also the state that passes: what dispatchers know, slots, dialogues"),
	}
}

// files gives the files that a connection to a secured server needs, by their settings.
func (c *NATS) files() iter.Seq2[string, *string] {
	return func(yield func(string, *string) bool) {
		_ = yield("nats.credentials", &c.Credentials) && yield("nats.nkey_seed_file", &c.NkeySeed) &&
			yield("nats.ca", &c.CA) && yield("nats.cert", &c.Cert) && yield("nats.key", &c.Key)
	}
}

func (c *NATS) readURL(n node) {
	var all []string
	listOf(&all, "", func(item node) (string, bool) { return item.address("nats", "tls", "ws", "wss") }).read(n)
	c.URL = strings.Join(all, ",")
}

// checkNATS looks for settings of a server that is not there.
func (doc *document) checkNATS() {
	c := doc.NATS
	switch {
	case c.Replicas > 1 && c.URL == "":
		doc.fail("nats.replicas", "the embedded server is alone, so that there can't be %d copies: set nats.url to a cluster, or leave replicas out", c.Replicas)
	case c.Replicas%2 == 0:
		doc.warn("nats.replicas", "%d copies bear the loss of no more servers than %d do", c.Replicas, c.Replicas-1)
	}
	if c.Credentials != "" && c.NkeySeed != "" {
		doc.fail("nats.nkey_seed_file", "stands beside nats.credentials: a connection has one identity")
	}
	if (c.Cert == "") != (c.Key == "") {
		doc.fail("nats.cert", "needs nats.key, and the other way round")
	}
	for path, file := range c.files() {
		if c.URL == "" && *file != "" {
			doc.warn(path, "has no effect without nats.url")
		}
	}
	for _, path := range []string{"nats.listen", "nats.store_dir"} { // of the embedded server
		if c.URL != "" && doc.given(path) {
			doc.warn(path, "has no effect beside nats.url")
		}
	}
}
