package movein

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"hydrallm/shared/config"
)

// Source is the configuration of another gateway.
type Source struct {
	Name   string                            // of the file, for messages
	Data   []byte                            // its text
	Format string                            // one of Formats, or "" for the one that it looks like
	Read   func(name string) ([]byte, error) // reads a file that it includes; nil = none is
}

// Result is what became of a source.
type Result struct {
	Format    string
	Config    []byte    // the configuration, as YAML with the findings as comments. It holds no value of a secret
	Findings  []Finding // what is not taken, and what is taken otherwise, in the order of the source
	Steps     []string  // what is left to do by hand, each a line
	Warnings  []string  // of the check of the result
	Providers int
	Upstreams int
	Models    int

	vars *variables
}

// format is a format of configurations.
type format struct {
	name  string
	holds string // what makes one
	like  func(root *value) bool
	ref   func(text string) (string, bool)
	read  func(b *builder) error
}

var formats = []format{
	{"litellm", "model_list of models with model_name and litellm_params", likeLiteLLM, osEnviron, importLiteLLM},
	{"bifrost", "providers by name, each with keys or network_config (JSON)", likeBifrost, envDot, importBifrost},
	{"olla", "discovery.static.endpoints, each with url and type", likeOlla, dollar, importOlla},
	{"gpt-load", "groups with channel_type and upstreams, as GET /api/groups answers (JSON)", likeGPTLoad, noVariables, importGPTLoad},
}

// Formats are the formats that can be taken over.
func Formats() []string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = f.name
	}
	return names
}

// ErrNothing is for a source of which nothing can be taken over. The result has the findings.
var ErrNothing = errors.New("nothing in it can be taken over")

// Import takes a configuration over. The result passes the check of the gateway; that it doesn't is a mistake of this package, and an error.
func Import(s Source) (*Result, error) {
	root, err := parse(s.Name, s.Data)
	if err != nil {
		return nil, concealed{err}
	}
	r, err := take(root, s)
	if err != nil {
		return r, concealed{err}
	}
	return r, nil
}

// concealed is an error whose text does not show what looks like a secret.
type concealed struct{ error }

func (c concealed) Error() string { return config.Conceal(c.error.Error()) }
func (c concealed) Unwrap() error { return c.error }

// take takes over what a tree holds.
func take(root *value, s Source) (*Result, error) {
	f, err := choose(root, s)
	if err != nil {
		return nil, err
	}
	b := newBuilder(root, f.ref)
	b.read = s.Read
	if err := f.read(b); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	r := &Result{
		Format: f.name, Steps: b.steps, Providers: len(b.Providers), Upstreams: len(b.Upstreams), Models: len(b.Models), vars: b.vars,
		Findings: root.findings(),
	}
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return strings.Compare(a.File, b.File) })
	if r.Providers == 0 {
		return r, fmt.Errorf("%s: %w", s.Name, ErrNothing)
	}
	body, err := b.encode()
	if err != nil {
		return r, err
	}
	b.vars.keep(string(body))
	r.Config = append([]byte(r.head(s.Name)), body...)
	return r, r.check()
}

// choose finds the format of a source.
func choose(root *value, s Source) (format, error) {
	if s.Format != "" {
		if i := slices.IndexFunc(formats, func(f format) bool { return f.name == s.Format }); i >= 0 {
			return formats[i], expect(formats[i], root, s.Name)
		}
		return format{}, fmt.Errorf("there is no format %q (known: %s)", s.Format, strings.Join(Formats(), ", "))
	}
	if root.get("providers").is() && root.get("providers").shape == list {
		return format{}, fmt.Errorf("%s looks like a configuration of HydraLLM itself: check it with hydrallm check %s", s.Name, s.Name)
	}
	var like []format
	for _, f := range formats {
		if f.like(root) {
			like = append(like, f)
		}
	}
	switch len(like) {
	case 1:
		return like[0], expect(like[0], root, s.Name)
	case 0:
		var b strings.Builder
		fmt.Fprintf(&b, "%s is no configuration that can be taken over. Expected is one of:", s.Name)
		for _, f := range formats {
			fmt.Fprintf(&b, "\n  %s: %s", f.name, f.holds)
		}
		return format{}, errors.New(b.String())
	default:
		names := make([]string, len(like))
		for i, f := range like {
			names[i] = f.name
		}
		return format{}, fmt.Errorf("%s may be of %s: say which with --from", s.Name, strings.Join(names, " or "))
	}
}

// expect refuses a source that lacks what the format is about.
func expect(f format, root *value, name string) error {
	if root.shape == mapping || root.shape == list && f.name == "gpt-load" {
		return nil
	}
	return fmt.Errorf("%s: a configuration of %s has %s", name, f.name, f.holds)
}

// any says whether a mapping has one of some keys.
func (v *value) any(keys ...string) bool {
	return v != nil && v.shape == mapping && slices.ContainsFunc(keys, func(k string) bool { return v.fields[k] != nil })
}

func likeLiteLLM(root *value) bool {
	return root.any("model_list", "litellm_settings", "router_settings", "general_settings", "credential_list")
}

// check reads the result with the loader of the gateway.
func (r *Result) check() error {
	env := config.Environment{Dir: ".", Lookup: r.vars.lookup}
	_, warnings, err := env.Parse("config.yaml", r.Config)
	if err != nil {
		return fmt.Errorf("the result does not pass the check, which is a mistake of hydrallm import, and not of your file; please report it: %w", err)
	}
	for _, w := range warnings {
		w.File = ""
		r.Warnings = append(r.Warnings, w.String())
	}
	return nil
}

// Variables gives the environment variables that the result names, in the order in which it came upon them.
func (r *Result) Variables() []Variable {
	all := make([]Variable, len(r.vars.all))
	for i, v := range r.vars.all {
		all[i] = Variable{Name: v.Name, Literal: v.Literal, From: v.From}
	}
	return all
}
