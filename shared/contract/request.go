// Package contract defines what the services say to each other: the envelope of a work message, the reply frames that carry an answer
// back to the ingress, and the facts. It knows no transport.
package contract

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"hydrallm/shared/openai/rawjson"
)

// Header names of work messages.
const (
	HeaderRequestID = "Hydra-Request-Id"
	HeaderDeadline  = "Hydra-Deadline" // Unix milliseconds by which a worker of the stage must have taken the request
	HeaderRequest   = "Hydra-Request"  // the rest of Request, as JSON
	HeaderBody      = "Hydra-Body"     // object name of a body that is offloaded to the object store
)

// Operation is what a request asks for.
type Operation string

// Operations.
const (
	Chat       Operation = "chat" // an answer of a model to messages
	Embeddings Operation = "embeddings"
	// CountTokens asks how many tokens a request for an answer has.
	CountTokens Operation = "count_tokens"
)

// Operations whose requests and answers are passed as they are. Each is named as its route below /v1, and as that of providers below their
// base URL.
const (
	Moderations      Operation = "moderations"
	Speech           Operation = "audio/speech"
	Transcriptions   Operation = "audio/transcriptions"
	Translations     Operation = "audio/translations"
	ImageGenerations Operation = "images/generations"
	ImageEdits       Operation = "images/edits"
	ImageVariations  Operation = "images/variations"
	Rerank           Operation = "rerank"
)

// Passthrough says whether requests and answers are passed as they are.
func (o Operation) Passthrough() bool {
	switch o {
	case Moderations, Speech, Transcriptions, Translations, ImageGenerations, ImageEdits, ImageVariations, Rerank:
		return true
	case Chat, Embeddings, CountTokens:
	}
	return false
}

// Name is the operation over a surface in the words of OpenTelemetry (gen_ai.operation.name), and its own name where those have none.
func (o Operation) Name(s Surface) string {
	if o == Chat && s == SurfaceCompletions {
		return "text_completion"
	}
	return string(o)
}

// Surface is the protocol that the client speaks. Embeddings have OpenAI's own, which shares its errors with chat.
type Surface string

// Surfaces.
const (
	SurfaceChat        Surface = "chat"        // Chat Completions, the protocol of the hub
	SurfaceMessages    Surface = "messages"    // Anthropic's
	SurfaceResponses   Surface = "responses"   // OpenAI's newer one
	SurfaceCompletions Surface = "completions" // OpenAI's older one
)

// Request is the envelope of a work message: everything the pipeline knows about a request except its body, which is the payload. The ingress
// reads what stages want to know from the body once and writes it here.
type Request struct {
	ID           string
	StartBy      time.Time     // no worker of this stage may begin later; the ingress has answered 503 by then
	QueueTimeout time.Duration // how long the request may wait for each stage
	Slip         Slip          // the stages that still have something to do

	Ingress      string // id of the ingress that owns the client's connection
	Principal    string // who asks
	Operation    Operation
	Surface      Surface
	ContentType  string // of the body, when it is a form; "" = JSON
	Model        string
	Stream       bool
	IncludeUsage bool // the client wants the usage at the end of a stream
	ReceivedAt   time.Time
	Priority     Priority    // among those that wait for a slot
	Headers      [][2]string // of the client, for a provider that speaks its protocol
	Traits       Traits
	Decision     *Decision // made by the ingress for a configured model, else by the analyzer

	// Fields that only the gateway knows.
	SessionID       string
	ForkFrom        string
	CompressContext *bool // nil = the setting
	NoHistory       bool  // the session has not been read, and the question not been saved: the database could not be had
	Web             Web
	WebParts        []byte // JSON array of parts that tell what was read for it; nil = none

	// Of requests for responses.
	Store      bool   // the response is to be stored
	Background bool   // no ingress owns it: the answer is recorded, and StartBy is the end of its lifetime
	Previous   string // id of the stored response that it goes on from; "" = none
	References bool   // items of the input stand for items of stored responses
	Inherited  int    // items at the begin of the input that are those of stored responses
}

// MaxName bounds a name that a client sends, such as that of a model or of a session, in bytes: they travel in message headers.
const MaxName = 512

// Principals that are no client key.
const (
	PrincipalAnonymous = "anonymous" // the gateway has no client keys
	PrincipalInternal  = "internal"  // the gateway itself; nobody from outside gets it
	PrincipalAdmin     = "admin"     // the admin key was given; sees everything
)

// NamedPrincipal begins the principals that are ids of named keys.
const NamedPrincipal = "ck_"

// Traits is what the ingress found in the body of a request. A stage that edits the body adds what it put in.
type Traits struct {
	Tokens   int64 // estimated size
	Images   bool  // it holds images
	Audio    bool  // it holds sound
	Files    bool  // it holds files
	Tools    bool  // the client offers tools
	UserText bool  // the last message is the user's and holds text
	URL      bool  // there may be an address of the web in that text
	Searches bool  // the client offers a web search of the provider's own
}

// WebContextName is the name of the system message that holds text from the web.
const WebContextName = "web_context"

// WebContextBegin is what the text of that message begins with, by which it is known where messages have no names.
const WebContextBegin = "<" + WebContextName + ">\n"

// Web is what a client wants from the web.
type Web struct {
	Search bool   // has_search: search in any case
	Tool   string // the search of the provider's own that tool_choice demands, "" = none; the gateway searches in its place if it does so at all
	Fetch  string // web_fetch: fetch this URL
	Auto   *bool  // auto_web_fetch: fetch what the text names; nil = the setting
}

// Asked says whether the client asks for text from the web by a field of its request.
func (w Web) Asked() bool { return w.Search || w.Fetch != "" || w.Auto != nil && *w.Auto }

// Decision says what is to serve a request; later stages never change it. A configured model has neither Provider nor Agent; every
// other request has one of them, the one to call first.
type Decision struct {
	Provider    string   // id of the provider to call first
	Agent       string   // id of the local agent to call first
	Model       string   // a configured model; else the model at Provider or Agent, "" when the dispatcher is to choose its default
	Reason      string
	PinProvider bool     // no other provider may answer
	PinModel    bool     // the client named the model: no other model may answer (R-077, C-04)
	Configured  bool     // Model is declared under models: in the configuration
	Premium     bool     // Model is of the premium tier and wants a key of that tier
	Needs       Features // what the request needs of a model beside its size
	Search      bool     // the client asks for a web search
	Tokens      int64    // estimated size of the request
}

// ConfiguredModel is the decision for a request that names a model of the configuration, but for what the request holds. Such a name matches
// exactly and shadows all others, so that nothing else has to be known to decide.
func ConfiguredModel(name string) Decision {
	return Decision{Model: name, Reason: ReasonModelHint, PinProvider: true, PinModel: true, Configured: true}
}

// Routing reasons.
const (
	ReasonModelHint       = "model_hint"       // the client named the model or the provider
	ReasonTokenCount      = "token_count"      // the size decided
	ReasonImagePresent    = "image_present"    // images decided
	ReasonKeyAvailability = "key_availability" // what should have served had no usable key, or failed
	ReasonRateLimit       = "rate_limit"       // what should have served was at its limit
)

// shownReasons are the words for people and clients.
var shownReasons = map[string]string{ //nolint:gosec // words, no credentials
	ReasonModelHint:    "USER_HINT",
	ReasonTokenCount:   "TOKEN_OPTIMIZED",
	ReasonImagePresent: "MULTIMODAL_ANALYSIS",
}

// ShowReason is a reason as answers and headers show it; others are in upper case.
func ShowReason(reason string) string {
	if shown, ok := shownReasons[reason]; ok {
		return shown
	}
	return strings.ToUpper(reason)
}

// Endpoint names what was called, for the ledger.
func (r *Request) Endpoint() Endpoint { return EndpointOf(r.Operation, r.Surface) }

// Header gives the message headers of the envelope.
func (r *Request) Header() map[string][]string {
	return map[string][]string{
		HeaderRequestID: {r.ID},
		HeaderDeadline:  {strconv.FormatInt(r.StartBy.UnixMilli(), 10)},
		HeaderRequest:   {string(r.appendJSON(make([]byte, 0, 512)))},
	}
}

// appendJSON writes the envelope. It is on the way of every request, so that reflection would show.
func (r *Request) appendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"ingress":`...), r.Ingress)
	dst = rawjson.AppendString(append(dst, `,"operation":`...), string(r.Operation))
	dst = rawjson.AppendString(append(dst, `,"surface":`...), string(r.Surface))
	dst = r.Slip.appendJSON(append(dst, `,"slip":`...))
	dst = appendInt(dst, "queue_ms", r.QueueTimeout.Milliseconds())
	if !r.ReceivedAt.IsZero() {
		dst = strconv.AppendInt(append(dst, `,"received_at":`...), r.ReceivedAt.UnixNano(), 10)
	}
	dst = appendText(dst, "content_type", r.ContentType)
	dst = appendText(dst, "principal", r.Principal)
	dst = appendText(dst, "model", r.Model)
	dst = appendText(dst, "priority", string(r.Priority))
	dst = appendTrue(dst, "stream", r.Stream)
	dst = appendTrue(dst, "include_usage", r.IncludeUsage)
	for i, h := range r.Headers {
		if i == 0 {
			dst = append(dst, `,"headers":{`...)
		} else {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(append(rawjson.AppendString(dst, h[0]), ':'), h[1])
	}
	if len(r.Headers) > 0 {
		dst = append(dst, '}')
	}
	dst = appendInt(dst, "tokens", r.Traits.Tokens)
	dst = appendTrue(dst, "images", r.Traits.Images)
	dst = appendTrue(dst, "audio", r.Traits.Audio)
	dst = appendTrue(dst, "files", r.Traits.Files)
	dst = appendTrue(dst, "tools", r.Traits.Tools)
	dst = appendTrue(dst, "user_text", r.Traits.UserText)
	dst = appendTrue(dst, "url", r.Traits.URL)
	dst = appendTrue(dst, "searches", r.Traits.Searches)
	dst = appendText(dst, "session_id", r.SessionID)
	dst = appendText(dst, "fork_from", r.ForkFrom)
	dst = appendGiven(dst, "compress_context", r.CompressContext)
	dst = appendTrue(dst, "no_history", r.NoHistory)
	dst = appendTrue(dst, "has_search", r.Web.Search)
	dst = appendText(dst, "search_tool", r.Web.Tool)
	dst = appendText(dst, "web_fetch", r.Web.Fetch)
	dst = appendGiven(dst, "auto_web_fetch", r.Web.Auto)
	if r.WebParts != nil {
		dst = append(append(dst, `,"web_parts":`...), r.WebParts...)
	}
	dst = appendTrue(dst, "store", r.Store)
	dst = appendTrue(dst, "background", r.Background)
	dst = appendText(dst, "previous", r.Previous)
	dst = appendTrue(dst, "references", r.References)
	dst = appendInt(dst, "inherited", int64(r.Inherited))
	if d := r.Decision; d != nil {
		dst = d.appendJSON(append(dst, `,"decision":`...))
	}
	return append(dst, '}')
}

func (d *Decision) appendJSON(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"model":`...), d.Model)
	dst = appendText(dst, "provider", d.Provider)
	dst = appendText(dst, "agent", d.Agent)
	dst = appendText(dst, "reason", d.Reason)
	dst = appendTrue(dst, "pin_provider", d.PinProvider)
	dst = appendTrue(dst, "pin_model", d.PinModel)
	dst = appendTrue(dst, "configured", d.Configured)
	dst = appendTrue(dst, "premium", d.Premium)
	dst = appendInt(dst, "needs", int64(d.Needs))
	dst = appendTrue(dst, "search", d.Search)
	return append(appendInt(dst, "tokens", d.Tokens), '}')
}

func appendText(dst []byte, name, value string) []byte {
	if value == "" {
		return dst
	}
	dst = append(append(append(dst, `,"`...), name...), `":`...)
	return rawjson.AppendString(dst, value)
}

func appendTrue(dst []byte, name string, value bool) []byte {
	if !value {
		return dst
	}
	return append(append(append(dst, `,"`...), name...), `":true`...)
}

func appendInt(dst []byte, name string, value int64) []byte {
	if value == 0 {
		return dst
	}
	return strconv.AppendInt(append(append(append(dst, `,"`...), name...), `":`...), value, 10)
}

// appendGiven appends a boolean unless it is nil.
func appendGiven(dst []byte, name string, value *bool) []byte {
	if value == nil {
		return dst
	}
	return strconv.AppendBool(append(append(append(dst, `,"`...), name...), `":`...), *value)
}

// ErrNotARequest says that a message has no readable request envelope.
var ErrNotARequest = errors.New("message has no request envelope")

// ParseRequest reads the envelope back from message headers. The error wraps ErrNotARequest.
func ParseRequest(h map[string][]string) (*Request, error) {
	var r Request
	get := func(name string) string {
		if v := h[name]; len(v) > 0 {
			return v[0]
		}
		return ""
	}
	if r.ID = get(HeaderRequestID); r.ID == "" {
		return nil, fmt.Errorf("%w: no request id", ErrNotARequest)
	}
	ms, err := strconv.ParseInt(get(HeaderDeadline), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: reading the deadline: %w", ErrNotARequest, err)
	}
	r.StartBy = time.UnixMilli(ms)
	text := []byte(get(HeaderRequest))
	if len(text) == 0 || text[0] != '{' || !rawjson.Valid(text) {
		return nil, fmt.Errorf("%w: the request is no JSON object", ErrNotARequest)
	}
	if !r.read(text) {
		return nil, fmt.Errorf("%w: a member of the request has the wrong type", ErrNotARequest)
	}
	if len(r.Slip) == 0 {
		return nil, fmt.Errorf("%w: no routing slip", ErrNotARequest)
	}
	return &r, nil
}

// read takes the members of a valid envelope; unknown ones are those of a later version and are left out. It is false when a member has the
// wrong type.
func (r *Request) read(text []byte) bool {
	ok := true
	for m := range rawjson.Members(text) {
		ok = r.readMember(string(m.Name()), m.Value.Of(text)) && ok
	}
	return ok
}

func (r *Request) readMember(name string, value []byte) bool {
	switch name {
	case "ingress":
		return readText(&r.Ingress, value)
	case "operation":
		return readText(&r.Operation, value)
	case "surface":
		return readText(&r.Surface, value)
	case "slip":
		return r.Slip.read(value)
	case "queue_ms":
		var ms int64
		ok := readInt(&ms, value) && ms >= 0 && ms <= math.MaxInt64/int64(time.Millisecond)
		r.QueueTimeout = time.Duration(ms) * time.Millisecond
		return ok
	case "received_at":
		var ns int64
		ok := readInt(&ns, value)
		r.ReceivedAt = time.Unix(0, ns).UTC()
		return ok
	case "content_type":
		return readText(&r.ContentType, value)
	case "principal":
		return readText(&r.Principal, value)
	case "model":
		return readText(&r.Model, value)
	case "priority":
		return readText(&r.Priority, value)
	case "stream":
		return readBool(&r.Stream, value)
	case "include_usage":
		return readBool(&r.IncludeUsage, value)
	case "headers":
		ok := value[0] == '{'
		for m := range rawjson.Members(value) {
			h := [2]string{string(m.Name())}
			ok = readText(&h[1], m.Value.Of(value)) && ok
			r.Headers = append(r.Headers, h)
		}
		return ok
	case "tokens":
		return readInt(&r.Traits.Tokens, value)
	case "images":
		return readBool(&r.Traits.Images, value)
	case "audio":
		return readBool(&r.Traits.Audio, value)
	case "files":
		return readBool(&r.Traits.Files, value)
	case "tools":
		return readBool(&r.Traits.Tools, value)
	case "user_text":
		return readBool(&r.Traits.UserText, value)
	case "url":
		return readBool(&r.Traits.URL, value)
	case "searches":
		return readBool(&r.Traits.Searches, value)
	case "session_id":
		return readText(&r.SessionID, value)
	case "fork_from":
		return readText(&r.ForkFrom, value)
	case "compress_context":
		return readGiven(&r.CompressContext, value)
	case "no_history":
		return readBool(&r.NoHistory, value)
	case "has_search":
		return readBool(&r.Web.Search, value)
	case "search_tool":
		return readText(&r.Web.Tool, value)
	case "web_fetch":
		return readText(&r.Web.Fetch, value)
	case "auto_web_fetch":
		return readGiven(&r.Web.Auto, value)
	case "web_parts":
		r.WebParts = value
		return value[0] == '['
	case "store":
		return readBool(&r.Store, value)
	case "previous":
		return readText(&r.Previous, value)
	case "background":
		return readBool(&r.Background, value)
	case "references":
		return readBool(&r.References, value)
	case "inherited":
		var n int64
		ok := readInt(&n, value) && n >= 0 && n <= math.MaxInt32
		r.Inherited = int(n)
		return ok
	case "decision":
		r.Decision = &Decision{}
		return r.Decision.read(value)
	}
	return true
}

func (d *Decision) read(text []byte) bool {
	ok := text[0] == '{'
	for m := range rawjson.Members(text) {
		value := m.Value.Of(text)
		switch string(m.Name()) {
		case "model":
			ok = readText(&d.Model, value) && ok
		case "provider":
			ok = readText(&d.Provider, value) && ok
		case "agent":
			ok = readText(&d.Agent, value) && ok
		case "reason":
			ok = readText(&d.Reason, value) && ok
		case "pin_provider":
			ok = readBool(&d.PinProvider, value) && ok
		case "pin_model":
			ok = readBool(&d.PinModel, value) && ok
		case "configured":
			ok = readBool(&d.Configured, value) && ok
		case "premium":
			ok = readBool(&d.Premium, value) && ok
		case "needs":
			var needs int64
			ok = readInt(&needs, value) && ok
			d.Needs = Features(needs & math.MaxUint8)
		case "search":
			ok = readBool(&d.Search, value) && ok
		case "tokens":
			ok = readInt(&d.Tokens, value) && ok
		}
	}
	return ok
}

func readText[T ~string](p *T, value []byte) bool {
	*p = T(rawjson.Text(value))
	return value[0] == '"'
}

func readBool(p *bool, value []byte) bool {
	*p = string(value) == "true"
	return *p || string(value) == "false"
}

func readGiven(p **bool, value []byte) bool {
	var given bool
	ok := readBool(&given, value)
	*p = &given
	return ok
}
