package httpapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	"github.com/pb33f/libopenapi/datamodel"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"hydrallm/services/ingress/internal/clientkey"
	"hydrallm/services/ingress/internal/modellist"
	"hydrallm/services/ingress/internal/openapi"
	"hydrallm/services/ingress/internal/snapshot"
	"hydrallm/services/ingress/internal/toolinstall"
	"hydrallm/shared/config"
	"hydrallm/shared/query"
)

func description(t *testing.T) []byte {
	t.Helper()
	text, err := openapi.Document("v1.2.3")
	require.NoError(t, err)
	return text
}

// operationsOf gives the operations of the document as method and path, each with its JSON.
func operationsOf(document []byte) map[string]gjson.Result {
	all := map[string]gjson.Result{}
	gjson.GetBytes(document, "paths").ForEach(func(path, item gjson.Result) bool {
		item.ForEach(func(method, op gjson.Result) bool {
			if method.Str != "parameters" {
				all[strings.ToUpper(method.Str)+" "+path.Str] = op
			}
			return true
		})
		return true
	})
	return all
}

// every route is in the document, and nothing else.
func TestDocumentHasAllRoutes(t *testing.T) {
	t.Parallel()
	want := []string{"GET " + pathV1}
	for path := range plainRoutes {
		want = append(want, "GET "+path)
	}
	for i := range operations {
		for method := range strings.SplitSeq(operations[i].methods, ", ") {
			if method != "HEAD" {
				want = append(want, method+" "+operations[i].path)
			}
		}
	}
	required, beyond := AdminRoutes()
	want = slices.Concat(want, required, beyond)
	require.ElementsMatch(t, want, slices.Collect(maps.Keys(operationsOf(description(t)))),
		"the routes of this package and those of the YAML files in internal/openapi differ")
}

// the document is valid OpenAPI 3.1, and every reference in it leads somewhere.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	text := description(t)
	rules, err := jsonschema.UnmarshalJSON(strings.NewReader(datamodel.OpenAPI31SchemaData))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("openapi.json", rules))
	schema, err := compiler.Compile("openapi.json")
	require.NoError(t, err)
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, schema.Validate(document))

	parsed, err := libopenapi.NewDocument(text)
	require.NoError(t, err)
	_, err = parsed.BuildV3Model()
	require.NoError(t, err)
	require.Equal(t, "v1.2.3", gjson.GetBytes(text, "info.version").Str)
}

// what the rules of OpenAPI can't check: parameters of paths are declared, ids are there once, admin routes want the admin key and no others do,
// schemas are used and can be compiled.
func TestDocumentIsSound(t *testing.T) {
	t.Parallel()
	text := description(t)
	inPath := regexp.MustCompile(`\{[a-z]+\}`)
	var ids []string
	for name, op := range operationsOf(text) {
		_, path, _ := strings.Cut(name, " ")
		ids = append(ids, op.Get("operationId").Str)
		require.NotEmpty(t, op.Get("summary").Str, name)
		require.Equal(t, strings.HasPrefix(path, prefixAdmin+"/"), op.Get("security.0.admin").Exists(), name)
		if strings.HasPrefix(path, prefixAdmin+"/") {
			require.Len(t, op.Get("security").Array(), 1, "%s: no other key will do", name)
		}
		declared := map[string]bool{}
		item := gjson.GetBytes(text, "paths."+gjson.Escape(path))
		for _, p := range append(item.Get("parameters").Array(), op.Get("parameters").Array()...) {
			if ref := p.Get("$ref").Str; ref != "" {
				p = gjson.GetBytes(text, strings.ReplaceAll(strings.TrimPrefix(ref, "#/"), "/", "."))
				require.True(t, p.Exists(), ref)
			}
			if p.Get("in").Str == "path" {
				declared["{"+p.Get("name").Str+"}"] = true
			}
		}
		require.ElementsMatch(t, inPath.FindAllString(path, -1), slices.Collect(maps.Keys(declared)), name)
	}
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), len(ids), "an operationId is there twice")

	compiler := jsonschema.NewCompiler()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	require.NoError(t, compiler.AddResource("openapi.json", document))
	for name := range gjson.GetBytes(text, "components.schemas").Map() {
		_, err := compiler.Compile("openapi.json#/components/schemas/" + name)
		require.NoError(t, err)
		require.Contains(t, string(text), `"#/components/schemas/`+name+`"`, "nothing uses it")
	}
}

// the document may be read below any prefix: paths are relative to where it was.
func TestDocumentBelowAPrefix(t *testing.T) {
	t.Parallel()
	servers := gjson.GetBytes(description(t), "servers.#.url").Array()
	require.Len(t, servers, 1)
	at, err := url.Parse("https://host.example/some/gateway/openapi.json")
	require.NoError(t, err)
	base, err := at.Parse(servers[0].Str)
	require.NoError(t, err)
	require.Equal(t, "https://host.example/some/gateway/", base.String())
}

// documented are the types of bodies, by their names in the document.
var documented = map[string]any{
	"AdminStatus": snapshot.Status{}, "AgentStatus": query.AgentStatus{}, "Call": query.Call{}, "CallError": query.CallError{},
	"Capabilities": modellist.Capabilities{}, "Channel": query.Channel{}, "Circuit": query.Circuit{}, "Cleaned": query.Cleaned{},
	"CommEntry": query.CommEntry{}, "CommLog": commLogs{}, "CommPayload": query.CommPayload{}, "CommUsage": query.CommUsage{},
	"Dispatcher": snapshot.Dispatcher{}, "Done": query.Done{}, "Health": query.Health{}, "Installed": installed{}, "ItemPage": query.ItemPage{},
	"KeyName": query.KeyName{}, "KeyQuota": query.KeyQuota{}, "KeyStatistics": query.KeyStatistics{}, "KeyStatus": query.KeyStatus{},
	"KeysAdded": query.KeysAdded{}, "Keywords": query.Keywords{}, "KeywordsAdded": query.KeywordsAdded{}, "Learned": query.Learned{},
	"Load": query.Load{}, "LogEntry": query.LogEntry{}, "Message": query.Message{}, "Missed": query.Missed{}, "Model": modellist.Model{},
	"ModelCooldown": query.ModelCooldown{}, "ModelQuota": query.ModelQuota{}, "NamedSum": query.NamedSum{}, "NewKeywords": query.NewKeywords{},
	"Onboarded": onboarded{}, "Onboarding": onboarding{}, "Part": query.Part{}, "Probed": query.Probed{}, "ProviderStatus": query.ProviderStatus{},
	"ProviderUsage": query.ProviderUsage{}, "Request": query.Request{}, "RequestPage": query.RequestPage{}, "ResponseDeleted": query.ResponseDeleted{},
	"Scrape": query.Scrape{}, "Scraping": query.Scraping{}, "Session": query.Session{}, "SessionImport": imported{}, "SessionMade": query.SessionMade{},
	"Setting": config.LiveSetting{}, "Settings": settingsNow{}, "SettingsChanged": settingsChanged{}, "Stats": query.Stats{}, "Sum": query.Sum{},
	"ClientTotal": query.ClientTotal{}, "ClientKey": shownKey{}, "ClientKeyMade": madeKey{}, "KeyLimits": clientkey.Limits{}, "KeyBudget": clientkey.Budget{}, "KeyBudgetUsed": shownBudget{},
	"Reload": reloaded{}, "ReloadInstance": reloadedInstance{}, "Timeline": query.Sums{}, "Tool": toolinstall.State{}, "Window": query.Window{},
}

// the members of what admin routes answer are those of the types, the ones that may be missing too.
func TestDocumentHasTheMembersOfTypes(t *testing.T) {
	t.Parallel()
	text := description(t)
	for name, value := range documented {
		schema := gjson.GetBytes(text, "components.schemas."+name)
		require.True(t, schema.Exists(), name)
		always, all := membersOf(reflect.TypeOf(value))
		members := schema.Get("properties").Map()
		delete(members, "client_name") // see withNames
		require.ElementsMatch(t, all, slices.Collect(maps.Keys(members)), name)
		var required []string
		if list := schema.Get("required"); list.Exists() {
			require.NoError(t, json.Unmarshal([]byte(list.Raw), &required), name)
		}
		require.ElementsMatch(t, always, required, name)
	}
}

// membersOf gives the members of a type in JSON, and those that are always there.
func membersOf(typ reflect.Type) (always, all []string) {
	for f := range typ.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			a, b := membersOf(f.Type)
			always, all = append(always, a...), append(all, b...)
			continue
		}
		all = append(all, name)
		if options == "" {
			always = append(always, name)
		}
	}
	return always, all
}
