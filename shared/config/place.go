package config

import (
	"os"
	"path/filepath"
	"strings"
)

// readDataDir puts what is stored into the directory that the environment names, unless the file says where it is.
func (doc *document) readDataDir(r *reader) {
	n, ok := r.variable("DATA_DIR")
	if !ok {
		return
	}
	dir := strings.TrimSpace(n.Value)
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(doc.started, dir)
	}
	before := filepath.Join(doc.started, "data") // where it was when this variable did not count beside a file
	if !doc.given("sessions.database") {
		doc.Sessions.Database = Secret("sqlite:" + doc.existing("DATA_DIR", filepath.Join(dir, "hydrallm.db"), filepath.Join(before, "hydrallm.db")))
	}
	if !doc.given("nats.store_dir") {
		doc.NATS.StoreDir = doc.existing("DATA_DIR", filepath.Join(dir, "nats"), filepath.Join(before, "nats"))
	}
}

// placePaths makes relative paths those that they are relative to the configuration file, wherever the process was started.
func (doc *document) placePaths() {
	if path, sqlite := strings.CutPrefix(doc.Sessions.Database.Reveal(), "sqlite:"); sqlite && !strings.HasPrefix(path, ":") {
		doc.Sessions.Database = Secret("sqlite:" + doc.place("sessions.database", path))
	}
	doc.NATS.StoreDir = doc.place("nats.store_dir", doc.NATS.StoreDir)
	for key, file := range doc.NATS.files() {
		*file = doc.place(key, *file)
	}
	doc.Server.TLS.Cert = doc.place("server.tls.cert_file", doc.Server.TLS.Cert)
	doc.Server.TLS.Key = doc.place("server.tls.key_file", doc.Server.TLS.Key)
	doc.Log.File = doc.place("log.file", doc.Log.File)
	intent := &doc.Web.Intent
	intent.PatternsDir = doc.place("web.intent.patterns_dir", intent.PatternsDir)
	intent.KeywordsDir = doc.place("web.intent.keywords_dir", intent.KeywordsDir)
}

// place is where a path of the file is. Older versions took paths relative to where the process was started.
func (doc *document) place(key, path string) string {
	switch started := filepath.Join(doc.started, path); {
	case path == "":
		return path
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	case doc.Source == FromEnvironment:
		return started
	default:
		return doc.existing(key, filepath.Join(filepath.Dir(doc.Source), path), started)
	}
}

// existing gives the path where something belongs, or where an older version put it, as long as it is only there.
func (doc *document) existing(key, path, before string) string {
	if path == before || exists(path) || !exists(before) {
		return path
	}
	if key == "DATA_DIR" || key == "sessions.database" || key == "nats.store_dir" {
		doc.OldPlaces = append(doc.OldPlaces, before)
	}
	doc.warn(key, "%s is used, where older versions put it: move it to %s", before, path)
	return before
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
