package telemetry

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of metrics of generative AI: the attributes of OpenTelemetry's semantic conventions ("Generative AI metrics") in the form that Prometheus has
// them.
const (
	LabelOperation     = "gen_ai_operation_name"
	LabelProvider      = "gen_ai_provider_name"
	LabelRequestModel  = "gen_ai_request_model"
	LabelResponseModel = "gen_ai_response_model"
	LabelTokenType     = "gen_ai_token_type" //nolint:gosec // G101: no credential, but what models count
	LabelErrorType     = "error_type"        // empty for what went well
)

// Values of LabelTokenType.
const (
	TokensIn  = "input"
	TokensOut = "output"
)

// Boundaries of the histograms, as the semantic conventions advise, in seconds and in tokens.
var (
	GenAISeconds    = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	GenAIFirstToken = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	GenAITokens     = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
)

// OtherModel stands for models that only their requests know: a label must not grow with what clients invent.
const OtherModel = "other"

// maxModelNames bounds the models that have labels of their own. A provider may offer thousands.
const maxModelNames = 300

// ModelNames bounds the label values that stand for models. It is safe for concurrent use.
type ModelNames struct {
	known func(provider, model string) bool

	mu   sync.RWMutex
	seen map[[2]string]string
}

// NewModelNames gives labels to the models that known tells of; provider may be "".
func NewModelNames(known func(provider, model string) bool) *ModelNames {
	return &ModelNames{known: known, seen: map[[2]string]string{}}
}

// Label gives the label value of a model, which is OtherModel for one that is not known, and for all that come when there are too many.
func (n *ModelNames) Label(provider, model string) string {
	n.mu.RLock()
	label, ok := n.seen[[2]string{provider, model}]
	full := len(n.seen) >= maxModelNames
	n.mu.RUnlock()
	if ok {
		return label
	}
	if full || !n.known(provider, model) {
		return OtherModel
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	label = strings.Clone(model) // what is given may be part of a request
	n.seen[[2]string{strings.Clone(provider), label}] = label
	return label
}

// Observers keeps the members of a vector of histograms that are in use, so that finding one again allocates nothing. It is safe for concurrent use.
type Observers[K comparable] struct {
	vec    *prometheus.HistogramVec
	values func(K) []string // of the labels of the vector

	mu    sync.RWMutex
	known map[K]prometheus.Observer
}

// NewObservers keeps the members of vec. There must be a bounded number of keys.
func NewObservers[K comparable](vec *prometheus.HistogramVec, values func(K) []string) *Observers[K] {
	return &Observers[K]{vec: vec, values: values, known: map[K]prometheus.Observer{}}
}

// Of gives the member of a key. One that was never asked for is shown without observations from then on.
func (o *Observers[K]) Of(key K) prometheus.Observer {
	o.mu.RLock()
	member, ok := o.known[key]
	o.mu.RUnlock()
	if ok {
		return member
	}
	member = o.vec.WithLabelValues(o.values(key)...)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[key] = member
	return member
}
