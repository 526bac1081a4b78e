package execute

import (
	"hydrallm/services/dispatcher/internal/dialect"
	"hydrallm/services/dispatcher/internal/stream"
	"hydrallm/services/dispatcher/internal/surface"
	"hydrallm/services/dispatcher/internal/upstream"
	"hydrallm/shared/contract"
)

// bypass gives the dialect of a link whose provider speaks the client's protocol and gets the request as it is, nil for one that does not. Whatever the
// operator wants changed in requests or answers is said in the hub's words, and ends it.
func (o *chat) bypass(l *link) dialect.Bypass {
	if _, ok := o.request.(surface.Native); !ok {
		return nil
	}
	d, ok := l.Channel.Dialect.(dialect.Bypass)
	if ok && d.Surface() == o.envelope.Surface && d.Surface() == contract.SurfaceCompletions {
		return d // whose words are the hub's, so that patches are merged into the request as it is
	}
	patch := l.Patch
	if l.Plain != nil { // what the gateway asks for by itself, the protocol has anyway
		patch = l.Plain
	}
	switch {
	case !ok, d.Surface() != o.envelope.Surface, !patch.Empty(), !l.Defaults.Empty(), l.Channel.Think != stream.ThinkOff, l.Channel.SessionHeader != "", l.NoImages, l.NoEffort:
		return nil
	}
	return d
}

// speaks says whether the provider of a link speaks the client's protocol.
func (o *chat) speaks(l *link) bool {
	d, ok := l.Channel.Dialect.(dialect.Bypass)
	return ok && d.Surface() == o.envelope.Surface
}

// withClients gives a call the headers of the client that are for a provider which speaks its protocol. What the operator set wins.
func withClients(call upstream.Call, r *contract.Request) upstream.Call {
	for _, h := range r.Headers {
		if call.Header.Get(h[0]) == "" {
			call.Header.Set(h[0], h[1])
		}
	}
	return call
}
