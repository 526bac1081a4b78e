package httpapi

import (
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
	"hydrallm/shared/surface"
	"hydrallm/shared/surface/completions"
	"hydrallm/shared/surface/messages"
)

// operation is what clients may call below /v1: a path with its methods.
type operation struct {
	path    string           // a last segment {id} stands for all that follows, {id} before others for one segment
	methods string           // that are allowed, in the form of the header Allow, but for OPTIONS
	route   route            // label of the metrics
	surface contract.Surface // of errors, and of requests for the pipeline
	handle  func(a *API, x *exchange, op *operation) error

	// Of those that the pipeline answers, which are handled by work.
	asks contract.Operation
	form bool // the body may be a form with files
	// scan checks a body and notes what later stages need to know of it. The error is an *openai.RequestError.
	scan func(body []byte, req *contract.Request) error
}

const (
	post = "POST"
	get  = "GET, HEAD"
	id   = "{id}"
)

// operations are all that there are. The first one with the path of a request serves it.
var operations = []operation{
	asking("/v1/chat/completions", contract.SurfaceChat, "chat"),
	asking("/v1/messages", contract.SurfaceMessages, "messages"),
	{
		path: "/v1/messages/count_tokens", methods: post, route: "count_tokens", surface: contract.SurfaceMessages, handle: (*API).work,
		asks: contract.CountTokens, scan: messages.ScanCount,
	},
	asking(pathResponses, contract.SurfaceResponses, "responses"),
	{path: pathResponses + "/" + id + "/input_items", methods: get, route: "responses", surface: contract.SurfaceResponses, handle: (*API).inputItems},
	{path: pathResponses + "/" + id + "/cancel", methods: post, route: "responses", surface: contract.SurfaceResponses, handle: (*API).cancelResponse},
	{path: pathResponses + "/" + id, methods: get + ", DELETE", route: "responses", surface: contract.SurfaceResponses, handle: (*API).storedResponse},
	{
		path: "/v1/embeddings", methods: post, route: "embeddings", surface: contract.SurfaceChat, handle: (*API).work,
		asks: contract.Embeddings, scan: scanEmbeddings,
	},
	{
		path: "/v1/completions", methods: post, route: "completions", surface: contract.SurfaceCompletions, handle: (*API).work,
		asks: contract.Chat, scan: completions.ScanClient,
	},
	passthrough(contract.Moderations, "moderations", false),
	passthrough(contract.Speech, "audio", false),
	passthrough(contract.Transcriptions, "audio", true),
	passthrough(contract.Translations, "audio", true),
	passthrough(contract.ImageGenerations, "images", false),
	passthrough(contract.ImageEdits, "images", true),
	passthrough(contract.ImageVariations, "images", true),
	passthrough(contract.Rerank, "rerank", false),
	{path: pathModels, methods: get, route: "models", surface: contract.SurfaceChat, handle: (*API).listModels},
	{path: pathModels + "/" + id, methods: get, route: "models", surface: contract.SurfaceChat, handle: (*API).showModel},
}

// asking gives the operation of a surface that asks a model for an answer.
func asking(path string, s contract.Surface, r route) operation {
	return operation{
		path: path, methods: post, route: r, surface: s, handle: (*API).work,
		asks: contract.Chat, scan: surface.FormOf(s).Scan,
	}
}

func scanEmbeddings(body []byte, req *contract.Request) error {
	scan, err := openai.ScanEmbeddings(body)
	if err != nil {
		return err
	}
	req.Model = scan.Model
	return nil
}

// spoken is the surface of an operation for a request. Models are listed in the words of whoever asks: Anthropic's clients say so.
func (op *operation) spoken(x *exchange) contract.Surface {
	if strings.HasPrefix(op.path, pathModels) && len(x.Request.Header.Peek(headerAnthropicVersion)) > 0 {
		return contract.SurfaceMessages
	}
	return op.surface
}

// operationAt gives the operation of a path, with what stands for its {id}, or nil.
func operationAt(path string) (op *operation, given string) {
	for i := range operations {
		op = &operations[i]
		if op.path == path {
			return op, ""
		}
		before, after, ok := strings.Cut(op.path, id)
		if !ok || !strings.HasPrefix(path, before) {
			continue
		}
		given, ok = strings.CutSuffix(path[len(before):], after)
		if ok && given != "" && (after == "" || !strings.Contains(given, "/")) {
			return op, given
		}
	}
	return nil, ""
}

// surfaceBelow gives the surface of an operation that a path leads to, or of one above it: a client that calls what does not exist there is told so in
// its own words. "" is none.
func surfaceBelow(path string) contract.Surface {
	best := ""
	var s contract.Surface
	for i := range operations {
		at := operations[i].path
		if len(at) > len(best) && (path == at || strings.HasPrefix(path, at+"/")) {
			best, s = at, operations[i].surface
		}
	}
	return s
}
