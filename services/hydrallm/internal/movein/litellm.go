package movein

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// liteLLM takes over the configuration of LiteLLM's proxy (https://docs.litellm.ai/docs/proxy/config_settings).
type liteLLM struct {
	*builder

	credentials map[string]*value   // credential_values by the name of the credential
	deployments []*deployment       // in the order of the source
	chains      map[string][]string // upstreams by model_name
	names       []string            // model_names, in their order
	known       map[string]bool     // those that are in the source, also if not taken
	concurrency int                 // of every deployment
	made        map[string]*provider
	same        map[string]string // ids of upstreams, by what they are
}

// osEnviron is how LiteLLM names a variable, for any value.
func osEnviron(s string) (string, bool) { return strings.CutPrefix(s, "os.environ/") }

func importLiteLLM(b *builder) error {
	l := &liteLLM{builder: b, credentials: map[string]*value{}, chains: map[string][]string{}, known: map[string]bool{}}
	l.include()
	b.root.explain(liteLLMRoot)
	b.root.get("general_settings").explain(liteLLMGeneral)
	b.root.get("litellm_settings").explain(liteLLMSettings)
	b.root.get("router_settings").explain(liteLLMRouter)
	for _, c := range b.root.get("credential_list").each() {
		if name := c.get("credential_name").str(); name != "" && l.credentials[name] == nil {
			l.credentials[name] = c.get("credential_values")
		}
	}
	general := b.root.get("general_settings")
	l.concurrency, _ = general.get("max_parallel_requests").whole()
	l.reserveUsual()
	for _, entry := range b.root.get("model_list").each() {
		l.deployment(entry)
	}
	l.place()
	l.general(general)
	l.settings()
	l.variablesBlock()
	return nil
}

// reserveUsual keeps the variables in which LiteLLM looks for what an entry lacks from being given to others.
func (l *liteLLM) reserveUsual() {
	if v := l.root.get("model_list"); v.is() && v.shape == list {
		for _, entry := range v.items {
			model := entry.get("litellm_params", "model")
			if !model.is() || entry.get("litellm_params", "api_key").is() {
				continue
			}
			prefix, _, _ := strings.Cut(model.scalar, "/")
			for _, name := range append(vendors[prefix].env, vendors[guess(model.scalar)].env...) {
				l.vars.source[name] = true
			}
		}
	}
}

// include adds what the files of "include" hold, as LiteLLM does: lists are joined, everything else takes the place of what was there.
func (l *liteLLM) include() {
	seen := 0
	for _, item := range l.root.get("include").each() {
		name := item.str()
		data, err := l.readInclude(name, seen)
		if err != nil {
			item.refuse("the file is not read: %v", err)
			continue
		}
		seen++
		more, err := parse(name, data)
		if err != nil || more.shape != mapping {
			item.refuse("the file is no YAML mapping that can be read")
			continue
		}
		l.reserve(more)
		for _, p := range more.pairs() {
			switch have := l.root.fields[p.key]; {
			case have == nil:
				l.root.put(p.key, p.value)
			case have.shape == list && p.value.shape == list:
				have.items = append(have.items, p.value.items...)
			default:
				have.refuse("%s has %s too, which counts", name, p.key)
				l.root.fields[p.key] = p.value
				l.root.put(p.key+" of "+l.root.file, have)
			}
		}
	}
}

// maxIncludes is how many files are included.
const maxIncludes = 50

func (l *liteLLM) readInclude(name string, seen int) ([]byte, error) {
	switch {
	case l.read == nil:
		return nil, errNoInclude
	case seen == maxIncludes:
		return nil, errManyIncludes
	case name == "" || path.IsAbs(name) || !path.IsAbs(path.Clean("/"+name)) || strings.Contains(name, ".."):
		return nil, errFarInclude
	}
	return l.read(name)
}

// place makes providers, upstreams and models of the deployments.
func (l *liteLLM) place() {
	l.pool()
	ids := map[*deployment]string{}
	for _, d := range l.deployments {
		p := l.provider(d)
		if d.wildcard {
			continue
		}
		ids[d] = l.upstream(d, p)
	}
	byCost := l.root.get("router_settings", "routing_strategy")
	cheapest := byCost.is() && byCost.scalar == "cost-based-routing"
	for _, name := range l.names {
		var group []*deployment
		for _, d := range l.deployments {
			if d.name == name && !d.wildcard {
				group = append(group, d)
			}
		}
		slices.SortStableFunc(group, func(a, b *deployment) int {
			if c := cmp.Compare(a.order, b.order); c != 0 {
				return c
			}
			if cheapest {
				return cmp.Compare(a.cost(), b.cost())
			}
			return cmp.Compare(b.weight, a.weight)
		})
		for _, d := range group {
			if !slices.Contains(l.chains[name], ids[d]) {
				l.chains[name] = append(l.chains[name], ids[d])
			}
		}
	}
}

// pool finds deployments that differ in nothing but the key: they become one, with a pool of keys.
func (l *liteLLM) pool() {
	serves := map[string][]string{} // what a key is used for
	for _, d := range l.deployments {
		account := d.place() + "\x00" + d.key
		serves[account] = append(serves[account], d.signature())
	}
	for account := range serves {
		slices.Sort(serves[account])
		serves[account] = slices.Compact(serves[account])
	}
	for _, d := range l.deployments {
		d.pool = d.place() + "\x00" + d.key
		if d.key != "" {
			d.pool = d.place() + "\x00" + strings.Join(serves[d.pool], "\x00")
		}
	}
}
