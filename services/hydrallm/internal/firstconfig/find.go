package firstconfig

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"hydrallm/shared/config"
)

// Found is a provider that can be used.
type Found struct {
	ID        string
	Variables []string // that hold its keys
	URLFrom   string   // variable with its address, or ""
	Models    []string // that a server of this machine lists
}

// servers are the local engines that are looked for, with their usual ports.
var servers = []struct {
	id   string
	port string
}{{"ollama", "11434"}, {"lmstudio", "1234"}, {"vllm", "8000"}, {"llamacpp", "8080"}}

// Limits of looking for servers.
const (
	probeTime = 2 * time.Second
	maxList   = 1 << 20 // bytes of a list of models
	maxModels = 50
)

// Keys finds the providers of which the environment has keys, in the order of the presets.
func Keys(lookup func(string) (string, bool)) []Found {
	var all []Found
	for _, p := range config.Presets() {
		f := Found{ID: p.ID}
		seen := map[string]bool{}
		for _, name := range p.KeyVariables {
			if v, ok := lookup(name); ok && strings.TrimSpace(v) != "" && !seen[strings.TrimSpace(v)] {
				seen[strings.TrimSpace(v)] = true
				f.Variables = append(f.Variables, name)
			}
		}
		if len(f.Variables) == 0 || p.Local {
			continue
		}
		if address, ok := lookup(p.URLVariable); ok && !loopback(address) {
			f.URLFrom = p.URLVariable
		}
		all = append(all, f)
	}
	return all
}

// loopback says whether an address is of this machine, or none at all: it is meant for clients of the gateway.
func loopback(address string) bool {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Hostname() == "" {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// Servers asks the usual ports of this machine, all at once, for lists of models. at gives another address for a port, for tests; nil is 127.0.0.1.
func Servers(ctx context.Context, at func(port string) string) []Found {
	if at == nil {
		at = func(port string) string { return net.JoinHostPort("127.0.0.1", port) }
	}
	transport := &http.Transport{DisableKeepAlives: true} // no proxy: it is this machine
	client := &http.Client{Timeout: probeTime, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	found := make([]*Found, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() {
			if models, ok := list(ctx, client, "http://"+at(s.port)+"/v1/models"); ok {
				found[i] = &Found{ID: s.id, Models: models}
			}
		})
	}
	wg.Wait()
	var all []Found
	for _, f := range found {
		if f != nil {
			all = append(all, *f)
		}
	}
	return all
}

// list asks for the models of a server. ok is false for what has no such list, and for a gateway like this one.
func list(ctx context.Context, client *http.Client, address string) (models []string, ok bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, false
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close() //nolint:errcheck // only read
	var answer struct {
		Data *[]struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, maxList)).Decode(&answer)
	if err != nil || resp.StatusCode != http.StatusOK || answer.Data == nil {
		return nil, false
	}
	for _, m := range *answer.Data {
		if m.ID == "auto" {
			return nil, false
		}
		if usable(m.ID) && !slices.Contains(models, m.ID) && len(models) < maxModels {
			models = append(models, m.ID)
		}
	}
	return models, true
}

// usable says whether the name of a model can be written into a configuration.
func usable(name string) bool {
	const longest = 200
	return name != "" && len(name) <= longest && strings.TrimSpace(name) == name && utf8.ValidString(name) && !strings.Contains(name, "${") &&
		!strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
}
