// Package openai is the wire format of the OpenAI chat API as the gateway sees it: the scan of a client's request and its rewriting for an
// upstream, server-sent events, the inspection of stream chunks and answers, and the error bodies of all kinds of upstreams.
//
// Nothing here decodes what it does not need. Text that is not changed passes byte for byte.
package openai
