package movein_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"hydrallm/services/hydrallm/internal/movein"
)

// a secret in the place of a name is neither shown nor in the result: as a key of a mapping, a name of a model, a provider, a header, a variable or
// a file, in a path of an address, in what a message quotes.
func TestSecretsInThePlaceOfNames(t *testing.T) {
	t.Parallel()
	const list = "model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: os.environ/A}}]\n"
	for _, secret := range []string{"sk-proj-12ab34CD", "gsk_12ab34CD56ef", "0123456789abcdef0123456789abcdef"} {
		for name, source := range map[string]string{
			"unknown member":        list + "SECRET: x",
			"deep member":           list + "litellm_settings: {a: {SECRET: {b: c}}}",
			"members":               list + "litellm_settings: {a: {b: c, SECRET: d, SECRET2: e}}",
			"key twice":             list + "general_settings: {SECRET: a, SECRET: b}",
			"model":                 list[:len(list)-2] + ", {model_name: SECRET, litellm_params: {model: openai/m}}]",
			"model of the provider": list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/SECRET}}]",
			"vendor":                list[:len(list)-2] + ", {model_name: n, litellm_params: {model: SECRET/m}}]",
			"custom vendor":         list[:len(list)-2] + ", {model_name: n, litellm_params: {model: m, custom_llm_provider: SECRET}}]",
			"header":                list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/m, extra_headers: {SECRET: x}}}]",
			"member of bodies":      list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/m, extra_body: {SECRET: x, y: SECRET}}}]",
			"variable":              list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/n, api_key: os.environ/SECRET}}]",
			"variable of a base":    list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/n, api_base: os.environ/SECRET}}]",
			"path of an address":    list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/n, api_base: \"https://h.example/SECRET/v1\", api_key: x-y}}]",
			"password":              list[:len(list)-2] + ", {model_name: n, litellm_params: {model: openai/n, api_base: \"ftp://u:SECRET@h.example/v1\", api_key: x-y}}]",
			"alias":                 list + "router_settings: {model_group_alias: {SECRET: m, n: SECRET}}",
			"fallback":              list + "router_settings: {fallbacks: [{SECRET: [m]}, {m: [SECRET]}]}",
			"variables":             list + "environment_variables: {SECRET: x}",
			"include":               list + "include: [SECRET.yaml]",
			"anchor":                "model_list: *SECRET",
			"tag":                   "model_list: !SECRET x",
			"broken":                "model_list:\n - SECRET: [x\n y: z",
			"escape":                "model_list: \"\\SECRET\"",
			"bifrost provider":      `{"providers": {"openai": {"keys": [{"name": "a", "value": "env.A", "models": ["*"]}]}, "SECRET": {"keys": [{"value": "env.B", "models": ["*"]}]}}}`,
			"bifrost key":           `{"providers": {"openai": {"keys": [{"name": "SECRET", "value": "env.A", "models": ["*", "SECRET"], "aliases": {"SECRET": "x"}}]}}}`,
			"bifrost keys mapping":  `{"providers": {"openai": {"keys": {"SECRET": {"models": ["*"]}}}, "groq": {"keys": [{"value": "env.A", "models": ["*"]}]}}}`,
			"olla endpoint":         "discovery: {static: {endpoints: [{url: \"http://h:1\", name: SECRET, type: ollama, headers: {SECRET: x}}]}}\nmodel_aliases: {SECRET: [x]}",
			"olla default":          "discovery: {static: {endpoints: [{url: \"http://${H:-SECRET}:1/SECRET\", name: n, type: ollama}, {url: \"http://h:1\", name: o, type: ollama}]}}",
			"gpt-load group":        `[{"name": "a", "channel_type": "openai", "upstreams": [{"url": "https://h.example"}]}, {"name": "SECRET", "channel_type": "SECRET", "upstreams": [{"url": "https://SECRET"}]}]`,
			"gpt-load rule":         `[{"name": "a", "channel_type": "openai", "upstreams": [{"url": "https://h.example"}], "model_redirect_rules": {"SECRET": "x"}, "param_overrides": {"SECRET": 1}}]`,
		} {
			r, err := movein.Import(movein.Source{Name: "f", Data: []byte(strings.ReplaceAll(source, "SECRET", secret))})
			var said []string
			if err != nil {
				require.NotContains(t, err.Error(), "does not pass the check", name)
				said = append(said, err.Error())
			}
			if r != nil {
				said = append(said, r.Report(), string(r.Config))
				for _, f := range r.Findings {
					said = append(said, f.String(), f.Path, f.Kind)
				}
				for _, v := range r.Variables() {
					said = append(said, v.Name, v.From)
				}
			}
			shown := strings.Join(said, "\n")
			require.NotContains(t, strings.ToLower(shown), strings.ToLower(secret), name)
			require.NotContains(t, strings.ToLower(strings.ReplaceAll(shown, "_", "-")), strings.ToLower(strings.ReplaceAll(secret, "_", "-")), name)
		}
	}
}

// a key that the source has in plain for another address does not get the name under which the vendor's own key may be set already, even if it is
// the same: that key would go to the other address.
func TestKeysOfOtherAddresses(t *testing.T) {
	t.Parallel()
	for name, source := range map[string]string{
		"litellm": "model_list: [{model_name: m, litellm_params: {model: openai/m, api_key: one-and-the-same}}, " +
			"{model_name: n, litellm_params: {model: openai/m, api_key: one-and-the-same, api_base: \"https://other.example/v1\"}}]",
		"bifrost": `{"providers": {"openai": {"keys": [{"value": "one-and-the-same", "models": ["*"]}]},
			"mine": {"keys": [{"value": "one-and-the-same", "models": ["*"]}], "network_config": {"base_url": "https://other.example"}, "custom_provider_config": {"base_provider_type": "openai"}}}}`,
	} {
		r, err := movein.Import(movein.Source{Name: "f", Data: []byte(source)})
		require.NoError(t, err, name)
		require.Contains(t, string(r.Config), "key: ${OPENAI_API_KEY}\n", name)
		require.Contains(t, string(r.Config), "key: ${OTHER_EXAMPLE_API_KEY}\n", name)
	}
}
