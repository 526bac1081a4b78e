package dispatcher

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hydrallm/shared/config"
	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// otherModel stands for models that only their requests know: a label must not grow with what clients invent.
const otherModel = "other"

// tokenMetrics counts the tokens of calls by who answered them.
type tokenMetrics struct {
	tokens *prometheus.CounterVec
	known  sync.Map // [2]string, provider and model, of the configuration
	book   func() *modelindex.Book
}

func newTokenMetrics(cfg *config.Config, book func() *modelindex.Book) *tokenMetrics {
	m := &tokenMetrics{
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "hydrallm_tokens_total", Help: "Tokens as providers counted them, by the model that answered.",
		}, []string{"provider", "model", "kind"}),
		book: book,
	}
	m.expect(cfg)
	return m
}

// expect shows the models of a configuration as 0 from the start.
func (m *tokenMetrics) expect(cfg *config.Config) {
	for _, u := range cfg.Upstreams {
		if _, known := m.known.LoadOrStore([2]string{u.Provider, u.Model}, true); !known {
			m.add(u.Provider, u.Model, 0, 0)
		}
	}
}

// count takes in the calls of a request.
func (m *tokenMetrics) count(u *contract.RequestRecord) {
	for i := range u.Attempts {
		a := &u.Attempts[i]
		if a.Prompt == 0 && a.Completion == 0 {
			continue
		}
		model := a.Model
		if _, discovered := m.book().Find(a.Provider, model); !discovered {
			if _, known := m.known.Load([2]string{a.Provider, model}); !known {
				model = otherModel
			}
		}
		m.add(a.Provider, model, a.Prompt, a.Completion)
	}
}

func (m *tokenMetrics) add(provider, model string, prompt, completion int64) {
	m.tokens.WithLabelValues(provider, model, "prompt").Add(float64(prompt))
	m.tokens.WithLabelValues(provider, model, "completion").Add(float64(completion))
}
