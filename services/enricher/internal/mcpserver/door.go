package mcpserver

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// door lets in who may come in.
type door struct {
	token  string
	places chan struct{}
	next   http.Handler
}

func (d door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case foreign(r.Header.Values("Origin")):
		http.Error(w, "pages of other origins may not ask", http.StatusForbidden)
		return
	case !d.knows(r.Header.Values("Authorization")):
		w.Header().Set("WWW-Authenticate", `Bearer realm="HydraLLM"`)
		http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
		return
	}
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many calls at the same time", http.StatusServiceUnavailable)
		return
	}
	d.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, r.Context())))
}

// requestKey is where a context has that of the HTTP request.
type requestKey struct{}

// work gives the context of a call: it ends after limit, when the client is gone, and when the server stops. The SDK's context does not end with
// the request in revisions with sessions, where a client might come back for the answer.
func work(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	request, ok := ctx.Value(requestKey{}).(context.Context)
	if !ok {
		return ctx, cancel
	}
	release := context.AfterFunc(request, cancel)
	return ctx, func() { release(); cancel() }
}

// foreign says whether a page of another machine made the request. Only browsers send an origin, and a page may have given its name the address
// of this machine (DNS rebinding), so that the host of the request tells nothing. Pages of this machine are tools for developers.
func foreign(origins []string) bool {
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil {
			return true
		}
		if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
			return true
		}
	}
	return false
}

// knows says whether a request has the token. It takes as long for any other as for one that is nearly right.
func (d door) knows(authorization []string) bool {
	if d.token == "" {
		return true
	}
	if len(authorization) != 1 {
		return false
	}
	scheme, token, _ := strings.Cut(authorization[0], " ")
	given, want := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(d.token))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}
