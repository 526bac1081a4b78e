package httpapi

import (
	"fmt"
	"strings"

	"hydrallm/shared/fault"
)

// unknown refuses a path that leads nowhere, in the words of the surface whose endpoint it holds.
func (x *exchange) unknown(path string) *fault.Fault {
	if _, endpoint := splitBase(strings.TrimSuffix(path, "/")); endpoint != "" && x.surface == "" {
		x.speak(surfaceBelow(prefixV1 + endpoint))
	}
	return noRoute(string(x.Method()), path)
}

// noRoute tells a client that its path leads nowhere, what there is, and what is probably wrong with the base URL that it was given.
func noRoute(method, path string) *fault.Fault {
	message := fmt.Sprintf("%s %s does not exist.", shown(method), shown(path))
	if hint := baseHint(path); hint != "" {
		message += " " + hint
	}
	return fault.New(fault.NotFound, message+" There are "+strings.Join(routes(), ", ")+".")
}

// maxShown bounds what is repeated of a request.
const maxShown = 200

func shown(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// routes are those of clients.
func routes() []string {
	list := make([]string, 0, len(operations))
	for i := range operations {
		method, _, _ := strings.Cut(operations[i].methods, ",")
		list = append(list, method+" "+operations[i].path)
	}
	return list
}

// baseHint says what is wrong with the base URL of a client that appended a known endpoint to it; "" when that is not what happened.
func baseHint(path string) string {
	base, endpoint := splitBase(strings.TrimSuffix(path, "/"))
	if endpoint == "" {
		return ""
	}
	route := prefixV1 + endpoint
	switch inner, nested := splitBase(base); {
	case nested != "" && inner == pathV1:
		return "The base URL must end in /v1, without the endpoint: the route is " + route + "."
	case strings.HasSuffix(base, pathV1+pathV1):
		return "The base URL holds /v1 twice: the route is " + route + "."
	case !strings.HasSuffix(base, pathV1):
		return "The base URL lacks /v1 at its end: the route is " + route + "."
	default:
		return "The route is " + route + ", without " + shown(strings.TrimSuffix(base, pathV1)) + " before it."
	}
}

// splitBase cuts a known endpoint, such as "chat/completions", off the end of a path; "" is none. The longest one counts.
func splitBase(path string) (base, endpoint string) {
	for i := range operations {
		name := strings.TrimPrefix(operations[i].path, prefixV1)
		if strings.Contains(name, id) {
			continue
		}
		if before, ok := strings.CutSuffix(path, "/"+name); ok && len(name) > len(endpoint) {
			base, endpoint = before, name
		}
	}
	if before, _, ok := strings.Cut(path+"/", "/models/"); ok && endpoint == "" {
		return before, "models"
	}
	return base, endpoint
}
