package browser

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"runtime"
	"sync"
	"time"
)

var (
	// ErrNone says that there is no Chromium on this machine.
	ErrNone = errors.New("there is no browser")
	// ErrStopped says that the pool takes no more pages.
	ErrStopped = errors.New("the browser is stopped")

	errSlow = errors.New("the page takes too long")
)

// Proxy is the way to the network.
type Proxy struct {
	Addr           string // 127.0.0.1 and the port
	User, Password string // what the proxy asks for; "" = nothing
}

// Config of a pool.
type Config struct {
	Path  string // of Chromium; "" = the usual names are looked for
	Proxy Proxy
	// Check refuses the address of a document. It is asked for each, also for redirects and frames, and for where a page is in the end.
	Check func(ctx context.Context, rawURL string) (*url.URL, error)
	Log   *slog.Logger

	Pages   int           // at a time; 0 = as many as processors, at least 2 and at most 8
	Timeout time.Duration // for one page; 0 = 20 s
	Load    time.Duration // from the begin to the load event, after which what is there is read; 0 = 10 s
	Settle  time.Duration // from the load event on, for what scripts load; 0 = 4 s
	Idle    time.Duration // after which an unused Chromium is ended; 0 = 5 min

	answer time.Duration // for tests
}

const retryPause = 30 * time.Second // between tries to start a Chromium that did not start

// Page is what became of a page.
type Page struct {
	URL    string // where it was in the end
	Status int    // of the answer that it came with; 0 = none is known
	HTML   []byte // the document in UTF-8, at most 5 MiB
}

// Pool shows pages, a few at a time. It needs no start; Stop ends it.
type Pool struct {
	cfg    Config
	leases chan struct{} // one for each page that is open

	ctx  context.Context //nolint:containedctx // it is the lifetime of the pool
	end  context.CancelCauseFunc
	work sync.WaitGroup // pages, starts and processes

	mu        sync.Mutex
	stopped   bool
	users     int       // who waits for a page or has one
	left      time.Time // when the last of them was gone
	current   *launch   // nil = no Chromium
	complaint string    // the reason for having none that was logged last
}

// launch is a Chromium that starts, runs or could not be started. What is below done may be read when done is closed.
type launch struct {
	done    chan struct{}
	process *process
	err     error
	failed  time.Time
}

// New makes a pool without a Chromium: the first page that is needed starts one.
func New(cfg Config) *Pool {
	cfg.Pages = cmp.Or(cfg.Pages, min(max(runtime.GOMAXPROCS(0), 2), 8))
	cfg.Timeout = cmp.Or(cfg.Timeout, 20*time.Second)
	cfg.Load = cmp.Or(cfg.Load, 10*time.Second)
	cfg.Settle = cmp.Or(cfg.Settle, 4*time.Second)
	cfg.Idle = cmp.Or(cfg.Idle, 5*time.Minute)
	cfg.answer = cmp.Or(cfg.answer, defaultAnswer)
	p := &Pool{cfg: cfg, leases: make(chan struct{}, cfg.Pages)}
	p.ctx, p.end = context.WithCancelCause(context.Background())
	return p
}

// Render shows a page until it has nothing more to load, and gives its document. It waits while all pages are in use, as long as ctx allows. An address
// that is refused by Check, at whatever redirect, is an error that wraps that of Check.
func (p *Pool) Render(ctx context.Context, rawURL string) (*Page, error) {
	where, err := p.cfg.Check(ctx, rawURL)
	if err != nil {
		return nil, err
	}
	if !p.enter() {
		return nil, ErrStopped
	}
	select {
	case p.leases <- struct{}{}:
	case <-ctx.Done():
		p.leave()
		return nil, fmt.Errorf("waiting for the browser: %w", context.Cause(ctx))
	case <-p.ctx.Done():
		p.leave()
		return nil, ErrStopped
	}
	ctx, cancel := context.WithTimeoutCause(ctx, p.cfg.Timeout, errSlow)
	defer cancel()
	type result struct {
		page *Page
		err  error
	}
	got := make(chan result, 1)
	// The lease is kept until the page is closed. Who waits for the text does not wait for that.
	go func() {
		defer p.leave()
		defer func() { <-p.leases }()
		process, err := p.process(ctx)
		if err != nil {
			got <- result{err: err}
			return
		}
		t := &tab{process: process, cfg: &p.cfg}
		defer t.close() //nolint:contextcheck // it is closed after ctx has ended, too
		page, err := t.show(ctx, where.String())
		got <- result{page, err}
	}()
	select {
	case r := <-got:
		if r.err != nil {
			return nil, fmt.Errorf("showing a page: %w", r.err)
		}
		return r.page, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("showing a page: %w", context.Cause(ctx))
	}
}

// Stop ends Chromium and everything that waits for it, and takes no more pages. It returns when nothing of all that is left, or with the error of ctx.
func (p *Pool) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	p.end(ErrStopped)
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.work.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("ending the browser: %w", context.Cause(ctx))
	}
}

// enter begins the use of the pool, leave ends it. What enters before Stop is waited for.
func (p *Pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	p.work.Add(1)
	p.users++
	return true
}

func (p *Pool) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	p.left = time.Now()
	p.work.Done()
}

// process gives the Chromium that runs, or starts one. However many ask, there is one start at a time.
func (p *Pool) process(ctx context.Context) (*process, error) {
	p.mu.Lock()
	l := p.current
	if l == nil || l.over() {
		l = &launch{done: make(chan struct{})}
		p.current = l
		p.work.Go(func() { p.keep(l) })
	}
	p.mu.Unlock()
	select {
	case <-l.done:
		return l.process, l.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// over says whether another start has a chance: this one failed a while ago, or what it started has ended.
func (l *launch) over() bool {
	select {
	case <-l.done:
		if l.err != nil {
			return time.Since(l.failed) > retryPause
		}
		return l.process.ctx.Err() != nil
	default:
		return false
	}
}

// keep starts a Chromium and stays until it has ended, by itself, with the pool, or because nobody uses it.
func (p *Pool) keep(l *launch) {
	l.process, l.err = start(p.ctx, &p.cfg)
	l.failed = time.Now()
	if l.err != nil {
		p.complain(l.err)
		close(l.done)
		return
	}
	pid := slog.Int("pid", l.process.cmd.Process.Pid)
	p.cfg.Log.InfoContext(p.ctx, "the browser has started", slog.String("path", l.process.cmd.Path), pid, slog.Bool("sandbox", sandboxed()))
	close(l.done)
	look := time.NewTicker(p.cfg.Idle)
	defer look.Stop()
	for running := true; running; {
		select {
		case <-look.C:
			if p.forget(l, true) {
				l.process.stop(errUnused)
			}
		case <-p.ctx.Done():
			l.process.stop(ErrStopped)
			running = false
		case <-l.process.ctx.Done():
			running = false
		}
	}
	p.forget(l, false)
	<-l.process.exited
	if cause := context.Cause(l.process.ctx); errors.Is(cause, errDied) || errors.Is(cause, errHung) {
		p.cfg.Log.WarnContext(p.ctx, "the browser has ended and is started again when a page needs it", pid, slog.Any("error", cause))
	} else {
		p.cfg.Log.InfoContext(p.ctx, "the browser has ended", pid, slog.Any("why", cause))
	}
}

// forget makes the next page start another Chromium, if only because nobody uses this one. It says whether it did.
func (p *Pool) forget(l *launch, unused bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != l || unused && (p.users > 0 || time.Since(p.left) < p.cfg.Idle) {
		return false
	}
	p.current = nil
	return true
}

// complain logs why there is no Chromium, once for each reason.
func (p *Pool) complain(err error) {
	if p.ctx.Err() != nil {
		return
	}
	p.mu.Lock()
	known := p.complaint == err.Error()
	p.complaint = err.Error()
	p.mu.Unlock()
	if !known {
		p.cfg.Log.WarnContext(p.ctx, "pages are read without a browser", slog.Any("error", err))
	}
}
