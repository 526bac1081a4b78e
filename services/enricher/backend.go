package enricher

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"hydrallm/services/enricher/internal/browser"
	"hydrallm/services/enricher/internal/cache"
	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/services/enricher/internal/extract"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/proxy"
	"hydrallm/services/enricher/internal/mcpclient"
	"hydrallm/services/enricher/internal/reader"
	"hydrallm/services/enricher/internal/search"
	"hydrallm/shared/bus"
	"hydrallm/shared/config"
	"hydrallm/shared/subject"
)

// backend is who fetches and searches, with what that needs between Start and Stop. How much of it happens at once is limited where it happens: the
// fetcher and the browser have so many places, however many requests wait for them.
type backend struct {
	enrich.Web

	engines *http.Client // of the search engines
	proxy   *proxy.Proxy
	pool    *browser.Pool
	server  *mcpclient.Client
	kept    *cache.Cache
}

// startBackend makes a backend. What was read is kept in a bucket of b, and not at all if b is nil.
func startBackend(ctx context.Context, b *bus.Bus, cfg *config.Web, version string, log *slog.Logger) (*backend, error) {
	r := &backend{engines: search.Client()}
	g := guard.New(guard.Config{AllowHosts: cfg.AllowHosts})
	var renderer reader.Renderer
	if use := reader.Use(cfg.Browser); use != reader.Never {
		var err error
		if r.proxy, err = proxy.Start(ctx, g, log); err != nil {
			return r, err
		}
		user, password := r.proxy.Credentials()
		r.pool = browser.New(browser.Config{
			Path: cfg.BrowserPath, Proxy: browser.Proxy{Addr: r.proxy.Addr(), User: user, Password: password}, Check: g.Check, Log: log,
		})
		renderer = r.pool
	}
	own := &enrich.InProcess{
		Reader: reader.New(fetch.New(g, fetch.Config{}), renderer, extract.Extract, reader.Use(cfg.Browser), log),
		Searcher: search.New(*cfg, r.engines, func(url string) bool {
			_, err := g.Parse(url)
			return err == nil
		}, log),
	}
	var web enrich.Web = own
	if cfg.Backend == "mcp" {
		r.server = mcpclient.New(cfg.MCP, g, version)
		byServer := &enrich.ByServer{Server: r.server, Log: log}
		if cfg.MCP.Fallback {
			byServer.Fallback = own
		}
		web = byServer
	}
	if r.Web = web; b == nil {
		return r, nil
	}
	bucket, err := b.Bucket(ctx, subject.WebCacheBucket)
	if err != nil {
		return r, err
	}
	r.kept = cache.New(bucket, cfg.CacheTTL, log)
	r.Web = &enrich.Kept{Web: web, Cache: r.kept, TTL: cfg.CacheTTL, Mode: cfg.Backend + "." + cfg.Browser}
	return r, nil
}

// stop ends what there is of a backend.
func (b *backend) stop(ctx context.Context) error {
	if b == nil {
		return nil
	}
	if b.kept != nil {
		b.kept.Stop()
	}
	var errs []error
	if b.server != nil {
		b.server.Close()
	}
	if b.pool != nil {
		errs = append(errs, b.pool.Stop(ctx))
	}
	if b.proxy != nil {
		errs = append(errs, b.proxy.Stop(ctx))
	}
	b.engines.CloseIdleConnections()
	return errors.Join(errs...)
}
