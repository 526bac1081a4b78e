// Package openapi has the description of the HTTP interface, as OpenAPI 3.1. It is written by hand in the YAML files here, which are put together; tests
// of httpapi compare it with the routes.
package openapi

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"

	"go.yaml.in/yaml/v3"
)

//go:embed *.yaml
var files embed.FS

// Document gives the document as JSON, for a version of the gateway.
func Document(version string) ([]byte, error) {
	names, err := fs.Glob(files, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("listing the parts: %w", err)
	}
	all := map[string]any{}
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading a part: %w", err)
		}
		var part map[string]any
		if err := yaml.Unmarshal(text, &part); err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		if err := add(all, part, name); err != nil {
			return nil, err
		}
	}
	if info, ok := all["info"].(map[string]any); ok {
		info["version"] = version
	}
	text, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("encoding the document: %w", err)
	}
	return text, nil
}

// add puts the members of a part into an object. What two parts have must be an object in both.
func add(all, part map[string]any, at string) error {
	for name, value := range part {
		there, twice := all[name]
		if !twice {
			all[name] = value
			continue
		}
		into, ok := there.(map[string]any)
		more, both := value.(map[string]any)
		if !ok || !both {
			return fmt.Errorf("%s.%s: another part has it too", at, name)
		}
		if err := add(into, more, at+"."+name); err != nil {
			return err
		}
	}
	return nil
}
