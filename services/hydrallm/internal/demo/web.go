package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// web is what the gateway has of the internet: a search engine that speaks like SearXNG and finds one page, and the page. No engine finds its own pages, so
// that these are two servers.
type web struct{ search, page *site }

// site is a server on a free port.
type site struct {
	addr    *net.TCPAddr
	http    *http.Server
	serving sync.WaitGroup
}

// pageHosts are the addresses that the page may have: one of its own, where the system has more than one for itself, so that the gateway opens its guard for
// nothing else on this machine.
var pageHosts = []string{"127.80.8.1", "127.0.0.1"}

func startWeb(ctx context.Context) (w *web, err error) {
	w = &web{}
	if w.page, err = startSite(ctx, http.HandlerFunc(showLighthouse), pageHosts...); err != nil {
		return w, err
	}
	w.search, err = startSite(ctx, w.engine(), "127.0.0.1")
	return w, err
}

// startSite serves on the first of the hosts that this machine has.
func startSite(ctx context.Context, handler http.Handler, hosts ...string) (*site, error) {
	var lc net.ListenConfig
	var failed []error
	for _, host := range hosts {
		ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, "0"))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		addr, ok := ln.Addr().(*net.TCPAddr)
		if !ok {
			return nil, errors.Join(fmt.Errorf("listening on %s is not TCP", host), ln.Close())
		}
		s := &site{addr: addr, http: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}}
		s.serving.Go(func() { _ = s.http.Serve(ln) }) // ends with stop
		return s, nil
	}
	return nil, fmt.Errorf("listening for the web of the demo: %w", errors.Join(failed...))
}

func (w *web) stop(ctx context.Context) error {
	var errs []error
	for _, s := range []*site{w.search, w.page} {
		if s == nil {
			continue
		}
		if err := s.http.Shutdown(ctx); err != nil {
			errs = append(errs, s.http.Close())
		}
		s.serving.Wait()
	}
	return errors.Join(errs...)
}

const lighthouse = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>The lighthouse of Demo Bay</title></head><body><main><article>
<h1>The lighthouse of Demo Bay</h1>
<p>The lighthouse of Demo Bay got a new lamp on 1 May 2026. The lamp is an LED of 90 watts and can be seen from 21 nautical miles away.</p>
<p>Before that, a lamp of 1000 watts had been in service for 38 years. The keeper of the lighthouse says that the new lamp of Demo Bay needs a tenth of the power, and
that fishing boats see it better in rain.</p>
<p>Visitors may climb the 168 steps to the gallery of the lighthouse on Sundays from ten to four. The path from the harbour takes half an hour on foot.</p>
</article></main></body></html>
`

func showLighthouse(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, lighthouse) // the gateway may have left
}

// engine finds the page, whatever is looked for.
func (w *web) engine() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /search", func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(map[string]any{"query": r.FormValue("q"), "results": []map[string]string{{ // the gateway may have left
			"url": "http://" + w.page.addr.String() + "/lighthouse", "title": "The lighthouse of Demo Bay",
			"content": "The lighthouse of Demo Bay got a new lamp on 1 May 2026.",
		}}})
	})
	return mux
}
