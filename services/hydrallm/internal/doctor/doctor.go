package doctor

import (
	"context"
	"sync"
	"time"

	"hydrallm/services/dispatcher"
	"hydrallm/shared/config"
	"hydrallm/shared/process"
)

// Options say what to look at.
type Options struct {
	Settings process.Settings // Config is nil when the configuration is not valid
	Invalid  error            // why it is not

	URL       string // of the gateway; "" = where the configuration has it, if something listens there
	Model     string // to ask the gateway for; "" = the first of the configuration, or auto
	Questions dispatcher.Questions
	Limit     time.Duration // of each check but answers
}

// Limits.
const (
	providersAtOnce = 8
	answerLimits    = 3 // so many times the limit of a check may an answer take
)

// Run makes all checks, at the same time as far as they don't get into each other's way, and gives their results in the same order each time.
func Run(ctx context.Context, o Options) Report {
	d := &doctor{Options: o, turn: make(chan struct{}, providersAtOnce)}
	groups := []func(context.Context) []Row{d.configuration, d.gateway}
	var secrets []string
	var examined []dispatcher.Examined
	if o.Settings.Config != nil {
		secrets = o.Settings.Secrets()
		providers := o.Settings.Providers
		examined = make([]dispatcher.Examined, len(providers))
		for i, p := range providers {
			groups = append(groups, func(ctx context.Context) []Row {
				d.turn <- struct{}{}
				defer func() { <-d.turn }()
				found, err := dispatcher.Examine(ctx, o.Settings.Config, p, dispatcher.Examination{
					Version: process.Version(), Questions: o.Questions, Limit: o.Limit, AnswerLimit: answerLimits * o.Limit,
				})
				if err != nil {
					return []Row{{Check: "provider " + p.ID, State: Fail, Found: err.Error(), Do: "see docs/configuration.md for the dialects"}}
				}
				examined[i] = found
				return d.provider(p, found)
			})
		}
		groups = append(groups, d.disk, d.nats, d.database)
	}
	results := make([][]Row, len(groups))
	var running sync.WaitGroup
	for i, group := range groups {
		running.Go(func() { results[i] = group(ctx) })
	}
	running.Wait()
	var rows []Row
	for _, r := range results {
		rows = append(rows, r...)
	}
	if o.Settings.Config != nil {
		rows = append(rows, clock(examined))
	}
	return newReport(process.Version(), rows, secrets)
}

// doctor is what checks work with.
type doctor struct {
	Options

	turn chan struct{}
}

// limited gives a context that ends with the limit of a check.
func (d *doctor) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d.Limit)
}

// optional says of a provider that nobody asked for it: without a configuration file, a local Ollama is looked for in case there is one.
func (d *doctor) optional(p config.Provider) bool {
	return d.Settings.Source == config.FromEnvironment && p.ID == "ollama"
}
