package modellist

import (
	"slices"
	"strings"

	"hydrallm/shared/contract"
	"hydrallm/shared/modelindex"
)

// Model is an entry of the list.
type Model struct {
	ID           string       `json:"id"`
	Object       string       `json:"object"`
	Created      int64        `json:"created"`
	OwnedBy      string       `json:"owned_by"`
	DisplayName  string       `json:"display_name"`
	Tier         string       `json:"tier"`
	Description  string       `json:"description"`
	Capabilities Capabilities `json:"capabilities"`
}

// Capabilities are what is known about a model; null is unknown.
type Capabilities struct {
	MaxTokens    *int     `json:"max_tokens"`
	Multimodal   *bool    `json:"multimodal"`
	HasSearch    *bool    `json:"has_search"`
	CostPerToken *float64 `json:"cost_per_token"`
}

// Owners of entries that belong to no provider.
const (
	OwnerGateway = "hydrallm"
	ownerAgent   = "local-agent"
)

// Provider is a configured provider.
type Provider struct {
	ID       string
	Agent    bool // a local engine
	Defaults modelindex.Defaults
}

// agentPrefix begins the ids of the models of agents.
const agentPrefix = "LOCAL-AGENT/"

// id gives the id under which clients ask for a model of the provider, and which routes to it alone.
func (p Provider) id(model string) string {
	if p.Agent {
		return agentPrefix + strings.ToUpper(p.ID) + "/" + model
	}
	return p.ID + "/" + model
}

func (p Provider) owner() string {
	if p.Agent {
		return ownerAgent
	}
	return p.ID
}

// Auto is the model that leaves the choice to the gateway.
const Auto = "auto"

// auto is the entry of it, which can what one of its providers can.
func (l *List) auto(book *modelindex.Book) Model {
	m := Model{ID: Auto, OwnedBy: OwnerGateway, DisplayName: "Automatic", Description: "The gateway chooses provider and model for each request"}
	images := new(false)
	for _, p := range l.providers {
		if !slices.Contains(l.automatic, p.ID) {
			continue
		}
		can := p.capabilities(book)
		if can.MaxTokens != nil && (m.Capabilities.MaxTokens == nil || *can.MaxTokens > *m.Capabilities.MaxTokens) {
			m.Capabilities.MaxTokens = can.MaxTokens
		}
		images = either(images, can.Multimodal)
	}
	m.Capabilities.Multimodal = images
	return m
}

// automatic is the entry that leaves the choice of the model to the provider.
func (p Provider) automatic(book *modelindex.Book) Model {
	return Model{
		ID: p.id(Auto), OwnedBy: p.owner(), DisplayName: p.ID + ", automatic", Description: "The gateway chooses among the models of " + p.ID,
		Capabilities: p.capabilities(book),
	}
}

// capabilities are those of the model that the gateway chooses, and for images of any: such a request goes to one that takes them.
func (p Provider) capabilities(book *modelindex.Book) Capabilities {
	var c Capabilities
	if chosen, ok := book.Default(p.ID, p.Defaults, false, nil); ok {
		c = capabilities(chosen)
	}
	listing, _ := book.Listing(p.ID)
	for _, m := range listing.Models {
		if !m.Embedding {
			c.Multimodal = either(c.Multimodal, capabilities(m).Multimodal)
		}
	}
	return c
}

// either says whether one of two has something: yes if one is known to, no if both are known not to, else unknown.
func either(a, b *bool) *bool {
	switch {
	case a != nil && *a, b != nil && *b:
		return new(true)
	case a == nil || b == nil:
		return nil
	default:
		return new(false)
	}
}

// discovered is the entry of a model that discovery found.
func (p Provider) discovered(found modelindex.Model) Model {
	m := Model{ID: p.id(found.ID), OwnedBy: p.owner(), DisplayName: found.Name, Tier: found.Tier, Capabilities: capabilities(found)}
	if m.DisplayName == "" {
		m.DisplayName = found.ID
	}
	if found.Embedding {
		m.Description = "For embeddings"
	}
	return m
}

// capabilities gives what the provider told.
func capabilities(m modelindex.Model) Capabilities {
	var c Capabilities
	if m.Window > 0 {
		c.MaxTokens = new(m.Window)
	}
	if known := m.Can | m.Cannot; known.Has(contract.FeatureImages) {
		c.Multimodal = new(m.Can.Has(contract.FeatureImages))
	}
	return c
}

// complete fills in what every entry has.
func (m *Model) complete(created int64) {
	m.Object, m.Created = "model", created
	if m.DisplayName == "" {
		m.DisplayName = m.ID
	}
	if m.Tier == "" {
		m.Tier = contract.TierUnknown
	}
}
