package contract

// DispatcherState is what a dispatcher publishes under its own key in the state bucket, every few seconds and soon after a change. It never
// holds a key or a prompt.
type DispatcherState struct {
	ID        string                   `json:"id"`
	Providers map[string]ProviderState `json:"providers"` // those that automatic routing may call, by id
}

// ProviderState is what routing needs to know of a provider (R-085: reading it takes nothing).
type ProviderState struct {
	Keys map[string]int `json:"keys"`           // keys that may be used now, by tier; a provider that needs none counts as one of tier unknown
	Open bool           `json:"open,omitempty"` // its circuit is open: as if it had no key
}

// Usable says whether the provider may be called now.
func (p ProviderState) Usable() bool { return !p.Open && p.count() > 0 }

// Premium says whether it may be called now with a premium key.
func (p ProviderState) Premium() bool { return !p.Open && p.Keys[TierPremium] > 0 }

func (p ProviderState) count() int {
	n := 0
	for _, keys := range p.Keys {
		n += keys
	}
	return n
}

// Tiers of keys and models.
const (
	TierFree         = "free"
	TierStandard     = "standard"
	TierPremium      = "premium"
	TierExperimental = "experimental"
	TierUnknown      = "unknown"
)
