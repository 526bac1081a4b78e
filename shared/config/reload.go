package config

import (
	"reflect"
	"strings"
)

// Reload gives the configuration with what another reading of its file says differently, as far as that can be taken over while the gateway runs
// live settings, routing, models, upstreams, and the keys of providers. applied and restart are the paths of what was taken over, and of what is
// different and counts after a restart only. When providers are different in more than their keys, upstreams and models stay as well, since they refer to
// them. The receiver stays as it is.
func (c *Config) Reload(next *Config) (now *Config, applied, restart []string) {
	doc := c.bound(newFindings(""))
	now = &doc.Config
	take := func(path string, live bool) {
		if live {
			applied = append(applied, path)
		} else {
			restart = append(restart, path)
		}
	}
	differ(doc.settings(), next.bound(newFindings("")).settings(), "", func(path string, is, want setting) {
		live := is.isLive || strings.HasPrefix(path, "routing.") && !strings.HasSuffix(path, "_models") // discovery works with those
		if live {
			reflect.ValueOf(is.kind.at).Elem().Set(reflect.ValueOf(want.kind.at).Elem())
		}
		take(path, live)
	})
	same := len(c.Providers) == len(next.Providers)
	for i := 0; same && i < len(c.Providers); i++ {
		a, b := c.Providers[i], next.Providers[i]
		a.Keys, b.Keys = nil, nil
		same = reflect.DeepEqual(a, b)
	}
	if !same {
		take("providers", false)
	}
	for i := 0; same && i < len(c.Providers); i++ {
		if !reflect.DeepEqual(c.Providers[i].Keys, next.Providers[i].Keys) {
			take("providers."+c.Providers[i].ID+".keys", true)
		}
	}
	changed(c.Upstreams, next.Upstreams, func(u Upstream) string { return "upstreams." + u.ID }, func(path string) { take(path, same) })
	changed(c.Models, next.Models, func(m Model) string { return "models." + m.Name }, func(path string) { take(path, same) })
	if same {
		now.Providers, now.Upstreams, now.Models = next.Providers, next.Upstreams, next.Models
		now.providerAt, now.upstreamAt, now.modelAt = next.providerAt, next.upstreamAt, next.modelAt
	}
	now.origins = next.origins
	return now, applied, restart
}

// differ calls fn for each setting that has another value in want than in is, which are the same declarations.
func differ(is, want []setting, below string, fn func(path string, is, want setting)) {
	for i, s := range is {
		path := join(below, s.key)
		switch w := want[i]; {
		case s.kind.list:
		case s.kind.at == nil:
			differ(s.kind.fields, w.kind.fields, path, fn)
		case !reflect.DeepEqual(reflect.ValueOf(s.kind.at).Elem().Interface(), reflect.ValueOf(w.kind.at).Elem().Interface()):
			fn(path, s, w)
		}
	}
}

// changed calls fn for each entry that only one of two lists has, or that is different in them, and once for a list in another order.
func changed[E any](is, want []E, name func(E) string, fn func(path string)) {
	at := map[string]E{}
	for _, e := range is {
		at[name(e)] = e
	}
	different := false
	for _, e := range want {
		before, there := at[name(e)]
		delete(at, name(e))
		if !there || !reflect.DeepEqual(before, e) {
			different = true
			fn(name(e))
		}
	}
	for _, path := range sortedKeys(at) {
		different = true
		fn(path)
	}
	if !different && !reflect.DeepEqual(is, want) && len(is) > 0 {
		section, _, _ := strings.Cut(name(is[0]), ".")
		fn(section)
	}
}
