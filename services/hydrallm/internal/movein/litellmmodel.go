package movein

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	errNoInclude    = errors.New("there is no directory to look for it")
	errManyIncludes = errors.New("there are too many")
	errFarInclude   = errors.New("only files below the directory of this one are")
)

// deployment is an entry of model_list.
type deployment struct {
	v        *value
	name     string // model_name
	vendor   string
	model    string // as the provider calls it
	wildcard bool

	url, key string
	headers  map[string]string
	timeout  time.Duration

	limit       int
	order       int
	weight      float64
	price       *price
	defaults    *yaml.Node
	patch       *yaml.Node
	completions string
	pool        string // what deployments have in common that share a provider
}

// place is what has to be the same for one provider.
func (d *deployment) place() string {
	names := make([]string, 0, len(d.headers))
	for k, v := range d.headers {
		names = append(names, k+": "+v)
	}
	sort.Strings(names)
	return strings.Join([]string{preset(d.vendor), d.url, strings.Join(names, "\n"), d.timeout.String()}, "\x00")
}

func preset(vendorName string) string {
	if p := vendors[vendorName].preset; p != "" {
		return p
	}
	return vendorName
}

// signature is what has to be the same for one upstream.
func (d *deployment) signature() string {
	return d.name + "\x00" + d.request()
}

// request is what is asked of the provider.
func (d *deployment) request() string {
	all, err := yaml.Marshal(d.upstream())
	if err != nil { // of nodes that were made here
		return d.v.path
	}
	return strconv.FormatBool(d.wildcard) + string(all)
}

// upstream is that of the deployment, without an id and a provider.
func (d *deployment) upstream() *upstream {
	return &upstream{Model: d.model, MaxConcurrency: d.limit, Completions: d.completions, Patch: d.patch, Defaults: d.defaults, Price: d.price}
}

func (d *deployment) cost() float64 {
	if d.price == nil {
		return math.Inf(1)
	}
	return 3*d.price.Input + d.price.Output
}

// param gives a parameter of a deployment: its own, or that of its credential.
func (l *liteLLM) param(d *deployment, name string) *value {
	params := d.v.get("litellm_params")
	if own := params.get(name); own.is() {
		return own
	}
	if credential := params.get("litellm_credential_name"); credential.plain() {
		return l.credentials[strings.TrimSpace(credential.scalar)].get(name)
	}
	return params.get(name)
}

// deployment reads an entry of model_list.
func (l *liteLLM) deployment(entry *value) {
	d := &deployment{v: entry, headers: map[string]string{}, order: math.MaxInt32, weight: 1}
	params := entry.get("litellm_params")
	if entry.shape != mapping || !params.get("model").plain() || !entry.get("model_name").plain() {
		entry.refuse("is no model: it needs model_name and litellm_params.model")
		return
	}
	if d.name = entry.get("model_name").name(); d.name == "" {
		entry.refuse("the gateway can have no model of this name")
		return
	}
	l.known[d.name] = true
	params.explain(liteLLMParams)
	entry.explain(liteLLMEntry)
	entry.get("model_info").explain(liteLLMInfo)
	if why := l.identify(d, params.get("model").name(), params.get("custom_llm_provider").str()); why != "" {
		entry.refuse("%s", why)
		return
	}
	if d.wildcard {
		if why := d.wild(); why != "" {
			entry.refuse("%s", why)
			return
		}
	}
	if why := l.account(d); why != "" {
		entry.refuse("%s", why)
		return
	}
	l.numbers(d, params)
	l.body(d, params)
	l.information(d, params)
	l.deployments = append(l.deployments, d)
	if !d.wildcard && !slices.Contains(l.names, d.name) {
		l.names = append(l.names, d.name)
	}
}

// identify finds out which provider has the model.
func (l *liteLLM) identify(d *deployment, model, custom string) (why string) {
	prefix, rest, cut := strings.Cut(model, "/")
	switch {
	case model == "":
		return "the gateway can have no model of this name"
	case model == "*":
		return "models of every provider have no counterpart: add each provider, and its models are there as provider/model"
	case custom != "":
		d.vendor, d.model = custom, strings.TrimPrefix(model, custom+"/")
	case cut:
		d.vendor, d.model = prefix, rest
	default:
		d.vendor, d.model = guess(model), model
	}
	if d.vendor == "azure_text" {
		d.vendor = "azure"
	}
	v, known := vendors[d.vendor]
	switch {
	case d.vendor == "":
		return "the name of the model does not tell whose it is"
	case d.vendor == "azure":
		d.model = strings.TrimPrefix(d.model, "responses/")
	case !known:
		return fmt.Sprintf("%s: %s", d.vendor, refusal(d.vendor))
	case v.preset == "" && v.url == "" && v.base == "" && !l.param(d, "api_base").is() && !l.param(d, "base_url").is():
		return "its address is not in the file"
	}
	if d.vendor == "text-completion-openai" {
		d.completions = "native"
	}
	d.wildcard = strings.Contains(d.model, "*") || strings.Contains(d.name, "*")
	if d.model == "" {
		return "the gateway can have no model of this name"
	}
	return ""
}

// guess tells the vendor of a name without a prefix, as LiteLLM does for the best known.
func guess(model string) string {
	for prefix, vendor := range map[string]string{
		"gpt-": "openai", "chatgpt-": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "ft:gpt": "openai", "text-embedding-": "openai", "omni-moderation": "openai",
		"text-moderation": "openai", "whisper-": "openai", "tts-": "openai", "dall-e-": "openai", "claude-": "anthropic",
	} {
		if strings.HasPrefix(model, prefix) {
			return vendor
		}
	}
	return ""
}

// account finds address and key of a deployment. The reason that it gives speaks for the whole entry.
func (l *liteLLM) account(d *deployment) (why string) {
	v := vendors[d.vendor]
	base := l.param(d, "api_base")
	if !base.is() {
		base = l.param(d, "base_url")
	}
	if d.vendor == "azure" {
		if why := l.azure(d, base); why != "" {
			return why
		}
	} else if base.is() {
		finish := unchanged
		if d.vendor == "huggingface" || d.vendor == "xinference" || preset(d.vendor) == "vllm" {
			finish = versioned
		}
		a, ok := l.address(base, d.vendor, finish)
		if !ok {
			return "its address can't be used: " + base.why
		}
		d.url = a.url
		if a.authorization != "" {
			d.headers["Authorization"] = a.authorization
		}
		if presetHosts[preset(d.vendor)] == strings.TrimSuffix(d.url, "/") {
			d.url = ""
		}
	} else if v.preset == "" && v.url == "" && v.base != "" {
		d.url = l.vars.named(v.base, "the address of "+d.vendor+", where LiteLLM looks for it")
		l.vars.beginsAddresses(v.base)
	}
	l.key(d, base, l.param(d, "api_key"))
	for _, p := range l.param(d, "extra_headers").pairs() {
		l.header(d.headers, p.key, p.value, d.vendor)
	}
	if org := l.param(d, "organization"); org.is() && org.plain() {
		l.header(d.headers, "OpenAI-Organization", org, d.vendor)
	}
	if v.url != "" && d.url == "" {
		d.url = v.url
	}
	l.param(d, "litellm_credential_name").str()
	return ""
}

// key finds the key of a deployment. Without one of its own LiteLLM takes that of the vendor, wherever the address leads; here the vendor alone gets it.
func (l *liteLLM) key(d *deployment, base, key *value) {
	v := vendors[d.vendor]
	usual := v.env
	if d.vendor == "azure" {
		usual = []string{"AZURE_API_KEY"}
	}
	switch {
	case !key.is() && len(usual) == 0:
	case !key.is() && d.url != "" && d.vendor != "azure" && (base.is() || v.base == ""):
		base.note("is asked without a key: that of %s is not sent to other addresses; set providers[].key if it wants one", d.vendor)
	case !key.is():
		d.key = l.vars.named(usual[0], "the key of "+d.vendor+", where LiteLLM looks for it")
	case strings.EqualFold(key.scalar, "none") || v.local && len(key.scalar) < 12 && !strings.HasPrefix(key.scalar, "os.environ/"):
		key.take()
		key.note("is left out: it is no key")
	default:
		d.key = l.secret(key, keyName(d.vendor, d.url))
	}
}

// azure is Azure OpenAI by its v1 route, which is OpenAI's: deployments are models, the key is a bearer token, and no version has to be named
// (https://learn.microsoft.com/azure/ai-foundry/openai/api-version-lifecycle).
func (l *liteLLM) azure(d *deployment, base *value) (why string) {
	for _, name := range []string{"azure_ad_token", "tenant_id", "client_id", "azure_username"} {
		if l.param(d, name).is() {
			return "azure: signing in with Microsoft Entra has no counterpart; a key of the resource has"
		}
	}
	if !base.is() {
		name := "AZURE_API_BASE"
		d.url = l.vars.named(name, "the address of the resource, where LiteLLM looks for it, without a slash at its end") + "/openai/v1"
		l.vars.beginsAddresses(name)
	} else {
		a, ok := l.address(base, "AZURE", func(string) string { return "/openai/v1" })
		if !ok {
			return "its address can't be used: " + base.why
		}
		d.url = a.url
	}
	base.note("becomes the address of Azure's v1 route, which takes names of deployments as models")
	if version := l.param(d, "api_version"); version.is() {
		version.take()
		version.note("is left out: the v1 route of Azure OpenAI needs none")
	}
	return ""
}

// numbers reads limits, times and what sets the order.
func (l *liteLLM) numbers(d *deployment, params *value) {
	if n, ok := params.get("max_parallel_requests").whole(); ok {
		d.limit = n
	}
	if n, ok := params.get("order").whole(); ok {
		d.order = n
	}
	if w, ok := params.get("weight").num(); ok {
		d.weight = w
		params.get("weight").note("sets the order alone: upstreams are asked one after the other, and don't share requests by weight")
	}
	if t, ok := params.get("timeout").seconds(); ok {
		d.timeout = t
		params.get("timeout").note("is the time until the headers here; the call as a whole may take longer")
	}
}
