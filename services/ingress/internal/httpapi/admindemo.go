package httpapi

import "hydrallm/shared/openai"

// Demo steers the upstreams of a demo. It must be safe for concurrent use.
type Demo interface {
	// Upstreams tells how they are.
	Upstreams() []DemoUpstream
	// Put breaks or heals one. It is false when there is no such upstream or state.
	Put(upstream, state string) bool
}

// DemoUpstream is an upstream of a demo.
type DemoUpstream struct {
	ID       string `json:"id"`
	State    string `json:"state"`    // healthy, broken, slow or limited
	Requests int    `json:"requests"` // for answers, since the start
}

// demoState is what the routes of a demo answer.
type demoState struct {
	Upstreams []DemoUpstream `json:"upstreams"`
}

func showDemo(x *exchange) error { return showJSON(x, demoState{x.api.Demo.Upstreams()}) }

func changeDemo(x *exchange) error {
	body, err := x.api.smallBody(x, smallBody)
	if err != nil {
		return err
	}
	upstream, err := needText(body, "upstream")
	if err != nil {
		return err
	}
	state, err := needText(body, "state")
	if err != nil {
		return err
	}
	if !x.api.Demo.Put(upstream, state) {
		return invalid("state", openai.CodeInvalidValue, "There is no such upstream, or no such state: healthy, broken, slow, limited")
	}
	return showDemo(x)
}
