package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Origin says where the value of a setting comes from.
type Origin string

// Origins.
const (
	ByDefault    Origin = "default"
	FromFile     Origin = "file"
	FromVariable Origin = "environment"
	FromStore    Origin = "stored"
)

// LiveSetting is a setting whose value may change while the gateway runs.
type LiveSetting struct {
	Name   string `json:"name"`  // its path, such as server.locale
	Value  any    `json:"value"` // as JSON has it
	Origin Origin `json:"origin"`
}

// Live gives the settings that may change while the gateway runs, in the order of the declarations.
func (c *Config) Live() []LiveSetting {
	var all []LiveSetting
	for _, s := range liveSettings("", c.bound(newFindings("")).settings()) {
		v := LiveSetting{Name: s.path, Value: s.value(), Origin: ByDefault}
		if o, ok := c.origins[s.path]; ok {
			v.Origin = o
		}
		all = append(all, v)
	}
	return all
}

// With gives the configuration with values, as JSON, in the place of those of live settings. Of what is no live setting, or no value for it, there is
// a finding, and nothing changes. The receiver stays as it is. No value is taken for anything but itself: ${NAME} stands for no variable.
func (c *Config) With(values map[string]json.RawMessage) (*Config, []Finding) {
	doc := c.bound(newFindings(""))
	origins := maps.Clone(c.origins)
	if origins == nil {
		origins = map[string]Origin{}
	}
	live := liveSettings("", doc.settings())
	for _, name := range sortedKeys(values) {
		i := slices.IndexFunc(live, func(s located) bool { return s.path == name })
		if i < 0 {
			doc.fail(name, "is no setting that can be changed while the gateway runs")
			continue
		}
		before := len(doc.errors.list)
		live[i].take(&reader{findings: doc.findings}, values[name])
		if len(doc.errors.list) == before {
			origins[name] = FromStore
		}
	}
	doc.everybody()
	doc.origins = origins
	return &doc.Config, doc.errors.list
}

// bound gives a document whose settings are those of a copy of c.
func (c *Config) bound(f *findings) *document {
	return &document{Config: *c, findings: f}
}

// located is a setting with its path.
type located struct {
	setting

	path string
}

// liveSettings gives those that are live, below a path.
func liveSettings(below string, all []setting) (live []located) {
	for _, s := range all {
		path := join(below, s.key)
		if s.isLive {
			live = append(live, located{s, path})
		}
		if !s.kind.list {
			live = append(live, liveSettings(path, s.kind.fields)...)
		}
	}
	return live
}

// value reads the setting.
func (s located) value() any {
	switch v := reflect.ValueOf(s.kind.at).Elem().Interface().(type) {
	case time.Duration:
		return v.String()
	case []string:
		return append([]string{}, v...)
	default:
		return v
	}
}

// take sets the value from JSON, which must be of the kind that value gives.
func (s located) take(r *reader, text json.RawMessage) {
	want := s.value()
	got := reflect.New(reflect.TypeOf(want))
	dec := json.NewDecoder(bytes.NewReader(text))
	if err := dec.Decode(got.Interface()); err != nil || bytes.Equal(bytes.TrimSpace(text), []byte("null")) {
		r.fail(s.path, "must be %s", kindName(want))
		return
	}
	if _, list := want.([]string); list && hasNull(text) {
		r.fail(s.path, "must be %s", kindName(want))
		return
	}
	n := scalar(fmt.Sprint(got.Elem().Interface()), 0)
	if list, ok := reflect.TypeAssert[[]string](got.Elem()); ok {
		n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range list {
			n.Content = append(n.Content, scalar(item, 0))
		}
	}
	s.kind.read(node{Node: n, r: r, path: s.path, literal: true})
}

// hasNull says whether a JSON array of strings has a null, which Go takes for an empty string.
func hasNull(text json.RawMessage) bool {
	var items []*string
	return json.Unmarshal(text, &items) == nil && slices.Contains(items, nil)
}

// kindName says in the words of JSON what a value is.
func kindName(v any) string {
	switch v.(type) {
	case bool:
		return "true or false"
	case int:
		return "a whole number"
	case []string:
		return "an array of strings"
	default:
		return "a string"
	}
}
