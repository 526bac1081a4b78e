package execute

import (
	"hydrallm/shared/contract"
	"hydrallm/shared/openai"
)

// question is the client's request, read but not decoded. It is of one of two kinds.
type question struct {
	chat  *openai.Request
	embed *openai.EmbeddingRequest // nil for chat
}

// scan reads the body of a job. The ingress has done so before, so that an error is a fault inside the gateway.
func scan(j Job) (q question, err error) {
	if j.Request.Operation == contract.Embeddings {
		q.embed, err = openai.ScanEmbeddings(j.Body)
		return q, err
	}
	q.chat, err = openai.ScanRequest(j.Body)
	return q, err
}

// stream says whether the client wants an event stream.
func (q question) stream() bool { return q.chat != nil && q.chat.Stream }

// appendUpstream appends the body for an upstream.
func (q question) appendUpstream(dst []byte, w openai.Rewrite) []byte {
	if q.embed != nil {
		return q.embed.AppendUpstream(dst, w)
	}
	return q.chat.AppendUpstream(dst, w)
}
