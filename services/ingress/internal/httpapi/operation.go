package httpapi

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// operation is a route whose requests the pipeline answers.
type operation struct {
	path      string
	route     route
	operation contract.Operation
	surface   contract.Surface
	name      string // for traces, in the words of OpenTelemetry
	// scan checks a body and notes what later stages need to know of it. The error is an *openai.RequestError.
	scan func(body []byte, req *contract.Request) error
}

// operations are all that there are.
var operations = [...]operation{
	{path: pathChat, route: routeChat, operation: contract.Chat, surface: contract.SurfaceChat, name: "chat", scan: scanChat},
	{path: pathEmbeddings, route: routeEmbeddings, operation: contract.Embeddings, surface: contract.SurfaceChat, name: "embeddings", scan: scanEmbeddings},
}

// operationAt gives the operation of a path, or nil.
func operationAt(path string) *operation {
	for i := range operations {
		if operations[i].path == path {
			return &operations[i]
		}
	}
	return nil
}

func scanChat(body []byte, req *contract.Request) error {
	scan, err := openai.ScanRequest(body)
	if err != nil {
		return err
	}
	req.Model, req.Stream, req.IncludeUsage = scan.Model, scan.Stream, scan.IncludeUsage
	req.Traits = contract.Traits{Tokens: scan.Tokens, Images: scan.Images, Audio: scan.Audio, Files: scan.Files, Tools: scan.Tools, UserText: scan.UserText}
	req.SessionID, req.ForkFrom, req.CompressContext = scan.SessionID, scan.ForkFrom, scan.CompressContext
	req.Web = contract.Web{Search: scan.HasSearch, Fetch: scan.WebFetch, Auto: scan.AutoWebFetch}
	return nil
}

func scanEmbeddings(body []byte, req *contract.Request) error {
	scan, err := openai.ScanEmbeddings(body)
	if err != nil {
		return err
	}
	req.Model = scan.Model
	return nil
}
