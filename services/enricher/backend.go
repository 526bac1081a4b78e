package enricher

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"hydrallm/services/enricher/internal/browser"
	"hydrallm/services/enricher/internal/enrich"
	"hydrallm/services/enricher/internal/extract"
	"hydrallm/services/enricher/internal/fetch"
	"hydrallm/services/enricher/internal/guard"
	"hydrallm/services/enricher/internal/guard/proxy"
	"hydrallm/services/enricher/internal/mcpclient"
	"hydrallm/services/enricher/internal/reader"
	"hydrallm/services/enricher/internal/search"
	"hydrallm/shared/config"
)

// backend is who fetches and searches, with what that needs between Start and Stop. How much of it happens at once is limited where it happens: the
// fetcher and the browser have so many places, however many requests wait for them.
type backend struct {
	enrich.Web

	engines *http.Client // of the search engines
	proxy   *proxy.Proxy
	pool    *browser.Pool
	server  *mcpclient.Client
}

func startBackend(ctx context.Context, cfg *config.Web, version string, log *slog.Logger) (*backend, error) {
	b := &backend{engines: search.Client()}
	g := guard.New(guard.Config{AllowHosts: cfg.AllowHosts})
	var renderer reader.Renderer
	if use := reader.Use(cfg.Browser); use != reader.Never {
		var err error
		if b.proxy, err = proxy.Start(ctx, g, log); err != nil {
			return b, err
		}
		user, password := b.proxy.Credentials()
		b.pool = browser.New(browser.Config{
			Path: cfg.BrowserPath, Proxy: browser.Proxy{Addr: b.proxy.Addr(), User: user, Password: password}, Check: g.Check, Log: log,
		})
		renderer = b.pool
	}
	own := &enrich.InProcess{
		Reader:   reader.New(fetch.New(g, fetch.Config{}), renderer, extract.Extract, reader.Use(cfg.Browser), log),
		Searcher: search.New(*cfg, b.engines, log),
		Allowed: func(url string) bool {
			_, err := g.Parse(url)
			return err == nil
		},
	}
	b.Web = own
	if cfg.Backend == "mcp" {
		b.server = mcpclient.New(cfg.MCP, g, version)
		byServer := &enrich.ByServer{Server: b.server, Log: log}
		if cfg.MCP.Fallback {
			byServer.Fallback = own
		}
		b.Web = byServer
	}
	return b, nil
}

// stop ends what there is of a backend.
func (b *backend) stop(ctx context.Context) error {
	if b == nil {
		return nil
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
