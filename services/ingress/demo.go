package ingress

import (
	"hydrallm/services/ingress/internal/httpapi"
	"hydrallm/shared/lifecycle"
	"hydrallm/shared/process"
)

// Demo steers the upstreams of a demo, for the page of the web interface that shows what happens when they break.
type Demo = httpapi.Demo

// DemoUpstream is an upstream of a demo.
type DemoUpstream = httpapi.DemoUpstream

// BuildDemo gives the Build of an ingress in a demo.
func BuildDemo(d Demo) process.Build {
	return func(p process.Parts) (lifecycle.Service, error) { return build(p, d) }
}
